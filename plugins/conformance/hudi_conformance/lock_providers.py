"""What a lock provider must do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pyarrow as pa

import hudi_core as hudi
from hudi_conformance.processes import in_another_process
from hudi_core.spi import BaseLockProvider, LockPlace, load_extension

_TRY = """
import json, sys
from hudi_conformance.lock_providers import lock_of

lock = lock_of(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
print(json.dumps(lock.try_lock(0)))
lock.unlock()
"""


def lock_of(name: str, path: str, options: Mapping[str, str]) -> BaseLockProvider:
    """A new lock on a table."""
    kind = load_extension("hudi.lock_providers", name)
    assert issubclass(kind, BaseLockProvider)
    return kind(LockPlace(path, None, "locked"), options)


class LockProviderSuite:
    """Tests of a lock provider, on tables in a local folder.

    Attributes
    ----------
    name
        Its name among the entry points.
    options
        Its own options, without ``hoodie.write.lock.<name>.``.
    """

    name: ClassVar[str]
    options: ClassVar[Mapping[str, str]] = {}

    def lock(self, path: Path) -> BaseLockProvider:
        """A new lock on a table."""
        return lock_of(self.name, str(path), self.options)

    def test_two_holders_exclude_each_other(self, tmp_path: Path) -> None:
        first, second = self.lock(tmp_path / "t"), self.lock(tmp_path / "t")
        assert first.try_lock(1) is True
        assert first.lease_left() > 0
        assert second.try_lock(0) is False
        first.unlock()
        assert second.try_lock(1) is True
        second.unlock()

    def test_another_thread_stays_out(self, tmp_path: Path) -> None:
        lock, taken = self.lock(tmp_path / "t"), []
        assert lock.try_lock(1)
        thread = Thread(target=lambda: taken.append(self.lock(tmp_path / "t").try_lock(0)))
        thread.start()
        thread.join()
        lock.unlock()
        assert taken == [False]

    def test_another_process_stays_out(self, tmp_path: Path) -> None:
        lock = self.lock(tmp_path / "t")
        given = (self.name, str(tmp_path / "t"), json.dumps(dict(self.options)))
        assert lock.try_lock(1)
        held = json.loads(in_another_process(_TRY, *given))
        lock.unlock()
        assert held is not lock.excludes_processes
        assert json.loads(in_another_process(_TRY, *given)) is True

    def test_tables_are_apart(self, tmp_path: Path) -> None:
        first, second = self.lock(tmp_path / "one"), self.lock(tmp_path / "two")
        assert first.try_lock(1)
        assert second.try_lock(1)
        first.unlock()
        second.unlock()

    def test_what_is_not_held_can_be_given_back(self, tmp_path: Path) -> None:
        lock, other = self.lock(tmp_path / "t"), self.lock(tmp_path / "t")
        lock.unlock()
        assert lock.try_lock(1)
        other.unlock()
        assert other.try_lock(0) is False, "a lock was given back by one who did not hold it"
        lock.unlock()

    def test_a_table_is_written_under_it(self, tmp_path: Path) -> None:
        prefix = f"hoodie.write.lock.{self.name}."
        options = {f"{prefix}{key}": value for key, value in self.options.items()}
        rows = pa.table({"id": ["a"], "value": [1]})
        table = hudi.Table.create(
            str(tmp_path / "t"),
            rows.schema,
            name="locked",
            record_key="id",
            options={"hoodie.write.lock.provider": self.name, **options},
        )
        table.upsert(rows)
        assert table.to_arrow().num_rows == 1
