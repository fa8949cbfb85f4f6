"""Only ``hudi_core.storage`` knows where a data file is: a spy on stores, and a look at sources.

Whoever joined a table's path and a file's name would miss the files that a storage strategy has
placed elsewhere: a rollback would leave them, and a listing count them never, or twice.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

import hudi_core as hudi
from hudi_core.storage import data_files
from hudi_core.storage.posix import PosixStorage
from tests.federated_tables import FORMATS, Store, is_data, many, new_table, ordered, states

REPOSITORY = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("hudi_core", "native_format", "iceberg_format", "delta_format", "pyspark_hudi")
ONE_FILE = (
    "read",
    "read_range",
    "put_if_absent",
    "put",
    "head",
    "version",
    "compare_and_set",
    "delete",
    "link",
)


class Spy:
    """Notes every data file that is looked for in a table's own folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, base: Path) -> None:
        self.asked = 0
        self.wrong: list[str] = []
        self._base = str(base)
        for name in ONE_FILE:
            monkeypatch.setattr(PosixStorage, name, self._storage(getattr(PosixStorage, name)))
        monkeypatch.setattr(PosixStorage, "discard", self._discard(PosixStorage.discard))
        monkeypatch.setattr(data_files, "data_filesystem", self._opened(data_files.data_filesystem))
        links = data_files.require_no_links
        monkeypatch.setattr(data_files, "require_no_links", self._links(links))

    def note(self, root: str, path: str) -> None:
        """Note a path that was asked for."""
        self.asked += 1
        if f"{root}/{path}".startswith(f"{self._base}/") and is_data(f"{root}/{path}"):
            self.wrong.append(f"{root}/{path}")

    def _storage(self, real: Any) -> Any:
        def spied(storage: PosixStorage, path: str, *rest: Any, **named: Any) -> Any:
            self.note(storage.root, path)
            return real(storage, path, *rest, **named)

        return spied

    def _discard(self, real: Any) -> Any:
        def spied(storage: PosixStorage, paths: Any) -> Any:
            for path in paths:
                self.note(storage.root, path)
            return real(storage, paths)

        return spied

    def _opened(self, real: Any) -> Any:
        def spied(uri: str, *rest: Any) -> tuple[pafs.FileSystem, str]:
            self.asked += 1
            # what is opened below it are data files
            if uri == self._base:
                self.wrong.append(f"a data file below {uri}")
            found: tuple[pafs.FileSystem, str] = real(uri, *rest)
            return found

        return spied

    def _links(self, real: Any) -> Any:
        def spied(uri: str, paths: Any) -> Any:
            given = list(paths)
            for path in given:
                self.note(uri, path)
            return real(uri, given)

        return spied


@pytest.mark.parametrize("table_format", FORMATS)
def test_nobody_looks_for_a_data_file_in_the_tables_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table_format: str
) -> None:
    store, base = Store("disk", tmp_path), tmp_path / "table"
    logs = {"hoodie.table.cdc.enabled": "true", "hoodie.metadata.record.index.enable": "true"}
    spy = Spy(monkeypatch, base)
    federated = new_table(store, table_format, base=str(base), options=logs)
    table = federated.table
    for done in states(table, lambda data: data):
        if done == "upsert":
            table.savepoint()
        if done == "delete":
            table.rollback(str(table.history().to_pylist()[0]["instant"]))
    table.clean(options={"hoodie.clean.commits.retained": "1"})
    table.cluster()
    saved = table.savepoints[0].instant
    table.restore(saved)
    table.delete_savepoint(saved)
    table.upsert(many(range(5), 9))
    table.purge()
    assert table.validate(keys=True).differences == ()
    table.repair()
    first = table.history().to_pylist()[-1]["instant"]
    assert table.incremental(str(first)) is not None
    assert ordered(hudi.Table.open(str(base)).to_arrow())
    federated.require_placed()
    table.drop()
    assert spy.asked > 1000
    assert spy.wrong == []


def test_the_spy_sees_who_goes_past_the_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spy = Spy(monkeypatch, tmp_path / "table")
    federated = new_table(Store("disk", tmp_path), base=str(tmp_path / "table"))
    name = "b/8bb5f7be-b1bf-5a75-9ee1-6c26dbe44676-0_1-2-0_20260101000000000.parquet"
    assert federated.table._session.opened.client.storage.head(name) is None
    assert spy.wrong == [f"{tmp_path}/table/{name}"]


def joins(tree: ast.AST) -> Iterator[str]:
    """Texts that begin with a table's path, and go on with that of a file of it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.JoinedStr) or len(node.values) < 3:
            continue
        first, slash, second = node.values[:3]
        if (
            isinstance(first, ast.FormattedValue)
            and isinstance(slash, ast.Constant)
            and slash.value == "/"
            and isinstance(second, ast.FormattedValue)
        ):
            root, path = ast.unparse(first.value), ast.unparse(second.value)
            if root.split(".")[-1] in ("base_path", "root") and path in _DATA_PATHS:
                yield f"{node.lineno}: {ast.unparse(node)}"


_DATA_PATHS = frozenset(
    {
        "path",
        "file.path",
        "join_path(partition, name)",
        "one.base_file.path",
        "status.path",
        "stat.path",
    }
)
_OF_METADATA = frozenset(
    {
        "hudi_core/metadata/layers.py",
        "hudi_core/metadata/compaction.py",
        "hudi_core/metadata/completeness.py",
        "hudi_core/metadata/index_definitions.py",
        "hudi_core/services/stage_record.py",
        "hudi_core/timeline/active.py",
        "hudi_core/timeline/lsm_history.py",
        "hudi_core/txn/markers.py",
        "iceberg_format/files.py",
    }
)
"""Modules that tell of files in the table's folder alone: of its metadata."""


def test_no_module_outside_storage_joins_a_tables_path_and_a_file() -> None:
    found = {}
    for package in PACKAGES:
        for module in sorted((REPOSITORY / package).rglob("*.py")):
            name = str(module.relative_to(REPOSITORY))
            some = list(joins(ast.parse(module.read_text(encoding="utf-8"))))
            if some and not name.startswith("hudi_core/storage/"):
                found[name] = some
    assert found.keys() == _OF_METADATA
