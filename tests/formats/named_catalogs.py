"""What every catalog of pyiceberg's must do for a table, whatever keeps it: one suite.

The oracle is pyiceberg's own catalog of the same kind, connected for itself, as any other program
would be.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog
from pyiceberg.table.snapshots import ancestors_of
from pyiceberg.table.update import RemovePropertiesUpdate, SetPropertiesUpdate

import hudi_core as hudi
import hudi_core.txn.publication
import iceberg_format.creation
from hudi_core.errors import CommitStateUnknownError, InvalidOptionError
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from iceberg_format.commit import requirements
from iceberg_format.external import ExternalCatalog
from iceberg_format.table import IcebergTable
from tests.formats.columns import CITIES
from tests.formats.dying_writers import Died
from tests.formats.iceberg_tables import NOTED, OPTIONS, bag, summary, typed, without_meta
from tests.tables import new_table

PREFIX: Final = "hoodie.table.format.iceberg.catalog."
SECRET: Final = "sesame-0451"
NEVER: Final = Instant(
    InstantTime("20200101000000000"),
    Action.COMMIT,
    State.COMPLETED,
    InstantTime("20200101000000001"),
)
"""A write that nobody knows of."""


@dataclass(frozen=True)
class Place:
    """Where a table is to be: a folder, and a name in a catalog.

    ``path``: of the folder: a local path, or a URI. ``given``: options that open it: those of the
    store and of the catalog. ``theirs``: the catalog as another program has it. ``identifier``: of
    the table in it. ``files``: returns all that is stored in the folder.
    """

    path: str
    given: dict[str, str]
    theirs: Catalog
    identifier: str
    files: Callable[[], dict[str, bytes]]

    def create(self, **more: str) -> hudi.Table:
        return new_table(self.path, NOTED, {**OPTIONS, **self.given, **more}, name="trips")

    def table(self) -> hudi.Table:
        return hudi.Table.open(self.path, self.given)

    def opened(self) -> OpenTable:
        return open_table(self.path, self.given)

    def ours(self) -> ExternalCatalog:
        catalog = IcebergTable.open(self.opened().client).catalog
        assert isinstance(catalog, ExternalCatalog)
        return catalog

    def agree(self) -> pa.Table:
        """Return the rows, which our reader and that of the catalog must see alike."""
        read = self.table().to_arrow()
        found = self.theirs.load_table(self.identifier).scan().to_arrow()
        assert bag(found.select(read.column_names)) == bag(read)
        return without_meta(read)

    def operations(self) -> list[str]:
        """What the snapshots of the current lineage were made by, the oldest first."""
        metadata = self.theirs.load_table(self.identifier).metadata
        found = [summary(one) for one in ancestors_of(metadata.current_snapshot(), metadata)]
        return [one["hudi.operation"] for one in reversed(found) if "hudi.instant" in one]


@dataclass
class Faults:
    """Stands between the plugin and the catalog's commit.

    ``before``: is called before the request is sent, with the place it is for. ``after``: is raised
    after the catalog has answered. ``calls``: how many requests there were.
    """

    before: Callable[[], None] = lambda: None
    after: BaseException | None = None
    calls: int = field(default=0, init=False)


@contextmanager
def faulty(place: Place) -> Iterator[Faults]:
    """Let requests of commits to the kind of catalog that a place has go wrong."""
    faults = Faults()
    kind = type(place.ours().catalog)
    commit = kind.commit_table

    def faulty_commit(self: Any, *given: Any) -> Any:
        faults.calls += 1
        faults.before()
        answer = commit(self, *given)
        if faults.after is not None:
            raise faults.after
        return answer

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hudi_core.txn.publication, "_PAUSE_S", 0)
        patched.setattr(kind, "commit_table", faulty_commit)
        yield faults


@contextmanager
def own_loggers_at(caplog: pytest.LogCaptureFixture, level: int) -> Iterator[None]:
    """Let the project and pyiceberg log all they can; other libraries have much to say."""
    with ExitStack() as stack:
        for name in ("hudi_core", "iceberg_format", "pyiceberg"):
            stack.enter_context(caplog.at_level(level, name))
        yield


class CatalogSuite:
    """Tests of a catalog; who inherits gives the fixture ``place``."""

    def test_every_write_is_in_the_catalog(self, place: Place) -> None:
        table = place.create()
        held: list[tuple[Any, Any]] = []
        for operation, batch in (
            ("bulk_insert", typed(range(6))),
            ("upsert", typed([1, 7], 1)),
            ("delete", typed([2])),
            ("insert_overwrite", typed([3, 9], 2)),
        ):
            result = getattr(table, operation)(batch)
            assert result.receipt.version == self.head(place)
            held.append((result, bag(place.agree())))
        loaded = place.theirs.load_table(place.identifier)
        for result, then in held:
            past = loaded.scan(snapshot_id=int(result.receipt.version)).to_arrow()
            assert bag(past.select(NOTED.names)) == then
            assert bag(without_meta(table.to_arrow(as_of=result.instant))) == then
        table.rollback(held[-1][0].instant)
        assert bag(place.agree()) == held[-2][1]
        table.delete_partitions([CITIES[0]])
        place.agree()
        assert place.table().validate().is_valid

    def test_a_namespace_that_there_is_not_is_refused(self, place: Place) -> None:
        wrong = {**place.given, f"{PREFIX}create-namespace": "false"}
        with pytest.raises(InvalidOptionError, match="has no namespace lake"):
            replace(place, given=wrong).create()
        assert place.files() == {}
        assert not place.theirs.namespace_exists(place.identifier.partition(".")[0])

    @staticmethod
    def head(place: Place) -> str:
        return str(place.theirs.load_table(place.identifier).metadata.current_snapshot_id)

    def test_columns_change_in_the_catalog(self, place: Place) -> None:
        table = place.create()
        table.insert(typed(range(4)))
        table.alter(add_columns=[pa.field("stars", pa.int32())])
        table.alter(rename={"value": "worth"}, promote={"stars": pa.int64()})
        loaded = place.theirs.load_table(place.identifier)
        assert {"stars", "worth"} <= set(loaded.schema().column_names)
        table = place.table()
        table.upsert(table.to_arrow(columns=table.schema.names).slice(0, 2))
        place.agree()

    def test_a_writer_that_dies_before_the_catalog_has_it_is_made_good(self, place: Place) -> None:
        place.create().insert(typed(range(4)))
        before = bag(place.agree())

        def die() -> None:
            raise Died

        with faulty(place) as faults:
            faults.before = die
            with pytest.raises(Died):
                place.table().upsert(typed([1], 1))
        assert bag(place.agree()) == before
        place.table().upsert(typed([2], 1))
        assert place.agree().num_rows == 4
        assert place.operations() == ["INSERT", "UPSERT", "UPSERT"]

    def test_a_writer_that_dies_after_the_catalog_has_it_is_not_repeated(
        self, place: Place
    ) -> None:
        place.create().insert(typed(range(4)))
        with faulty(place) as faults:
            faults.after = Died()
            with pytest.raises(Died):
                place.table().upsert(typed([1], 1))
        place.agree()
        place.table().upsert(typed([2], 1))
        assert place.operations() == ["INSERT", "UPSERT", "UPSERT"]
        assert bag(place.agree()) == bag(pa.concat_tables([typed([0, 3]), typed([1, 2], 1)]))

    def test_a_lost_answer_is_no_failure(self, place: Place) -> None:
        place.create().insert(typed(range(4)))
        with faulty(place) as faults:
            faults.after = TimeoutError("the answer was lost")
            place.table().upsert(typed([1], 1))
            assert faults.calls == 1
        assert place.operations() == ["INSERT", "UPSERT"]
        place.agree()

    def test_an_answer_that_never_comes_leaves_the_outcome_open(self, place: Place) -> None:
        place.create().insert(typed(range(4)))
        before = bag(place.agree())

        def lose() -> None:
            raise TimeoutError("no answer")

        with faulty(place) as faults:
            faults.before = lose
            with pytest.raises(CommitStateUnknownError, match="no answer"):
                place.table().upsert(typed([1], 1))
        assert bag(place.agree()) == before
        place.table().upsert(typed([2], 1))
        assert place.operations() == ["INSERT", "UPSERT", "UPSERT"]

    def test_a_rival_that_is_first_loses_nothing(self, place: Place) -> None:
        """The state that the commit was compared with is not the table's any more."""
        place.create().insert(typed(range(4)))
        with faulty(place) as faults:

            def be_first() -> None:
                faults.before = lambda: None
                table = place.opened()
                table.host.before_rollback(table.client, NEVER)

            faults.before = be_first
            result = place.table().upsert(typed([1], 1))
            assert faults.calls == 3  # refused; the rival's; on top of the rival's
        assert result.receipt.version == self.head(place)
        metadata = place.theirs.load_table(place.identifier).metadata
        lineage = list(ancestors_of(metadata.current_snapshot(), metadata))
        assert [summary(one).get("hudi.state", "") for one in lineage] == [
            "",
            f"rolled-back {NEVER.requested_time}",
            "",
            "first",
        ]
        place.agree()

    def test_rows_of_another_writer_are_not_lost(self, place: Place) -> None:
        place.create().insert(typed(range(4)))
        with faulty(place) as faults:

            def append() -> None:
                faults.before = lambda: None
                loaded = place.theirs.load_table(place.identifier)
                loaded.append(loaded.scan(limit=1).to_arrow())

            faults.before = append
            with pytest.raises(CommitStateUnknownError, match="not made by a Hudi writer"):
                place.table().upsert(typed([1], 1))
        assert place.theirs.load_table(place.identifier).scan().to_arrow().num_rows == 5
        assert place.operations() == ["INSERT"]

    def test_old_metadata_files_are_deleted(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(iceberg_format.creation, "KEPT_VERSIONS", 2)
        place.create()
        catalog = place.ours()
        for number in range(5):
            state = catalog.load()
            assert state is not None
            update = SetPropertiesUpdate(updates={"n": str(number)})
            catalog.commit(state, requirements(state.metadata), (update,))
        assert sum(name.endswith(".metadata.json") for name in place.files()) == 3

    def test_no_secret_is_written(self, place: Place, caplog: pytest.LogCaptureFixture) -> None:
        secrets = {
            f"{PREFIX}{key}": f"{SECRET}-{key}"
            for key in ("s3.secret-access-key", "adls.account-key", "header.X-Key", "token")
        }
        place = replace(place, given={**secrets, **place.given})
        told = []
        with caplog.at_level(logging.INFO), own_loggers_at(caplog, logging.DEBUG):
            table = place.create()
            table.insert(typed(range(3)))
            with faulty(place) as faults:
                faults.after = OSError("the answer was lost")
                table.upsert(typed([1], 1))
            table.rollback(table.upsert(typed([1], 2)).instant)
            table.alter(add_columns=[pa.field("stars", pa.int32())])
            wrong = {**place.given, f"{PREFIX}uri": "odd:nowhere", f"{PREFIX}type": "sql"}
            with pytest.raises(hudi.HudiError) as caught:
                hudi.Table.open(place.path, wrong).insert(typed([2], 2))
            told += traceback.format_exception(caught.value)
            told += [repr(table), repr(place.ours()), repr(place.opened())]
        told += [record.getMessage() + (record.exc_text or "") for record in caplog.records]
        known = [SECRET, *(value for key, value in place.given.items() if "secret" in key)]
        for secret in known:
            assert not [line for line in told if secret in line]
            assert not [name for name, data in place.files().items() if secret.encode() in data]

    def test_no_class_is_loaded_that_the_table_names(
        self, place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "trap_of_a_table.py").write_text("raise SystemExit('loaded')\n")
        monkeypatch.syspath_prepend(str(tmp_path))
        traps = dict.fromkeys(
            ("py-io-impl", "write.py-location-provider.impl", "io-impl", "py-catalog-impl"),
            "trap_of_a_table.Trap",
        )
        place.create().insert(typed(range(2)))
        catalog = place.ours()
        state = catalog.load()
        assert state is not None
        update = SetPropertiesUpdate(updates=traps)
        catalog.commit(state, requirements(state.metadata), (update,))
        with pytest.raises((SystemExit, ValueError)):
            place.theirs.load_table(place.identifier)
        sys.modules.pop("trap_of_a_table", None)
        place.table().upsert(typed([1], 1))
        assert place.table().to_arrow().num_rows == 2
        state = catalog.load()
        assert state is not None
        assert state.metadata.properties["py-io-impl"] == "trap_of_a_table.Trap"
        removal = RemovePropertiesUpdate(removals=list(traps))
        catalog.commit(state, requirements(state.metadata), (removal,))
        place.agree()


class ComparingSuite:
    """Tests of a catalog that changes a table's row where it is what was read; see above."""

    def test_a_rival_between_the_comparison_and_the_change_loses_nothing(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        place.create().insert(typed(range(4)))
        monkeypatch.setattr(hudi_core.txn.publication, "_PAUSE_S", 0)
        kind: Any = type(place.ours().catalog)
        write, rivals = kind._write_metadata, list[Catalog]()

        def be_first(*given: Any, **named: Any) -> None:
            if not rivals:
                rivals.append(place.theirs)
                place.theirs.load_table(place.identifier).transaction().set_properties(
                    {"rival": "was here"}
                ).commit_transaction()
            write(*given, **named)

        monkeypatch.setattr(kind, "_write_metadata", staticmethod(be_first))
        place.table().upsert(typed([1], 1))
        assert rivals
        assert place.theirs.load_table(place.identifier).properties["rival"] == "was here"
        assert place.operations() == ["INSERT", "UPSERT"]
        place.agree()


def stored(folder: Path) -> dict[str, bytes]:
    """Return everything that is stored below a local folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}
