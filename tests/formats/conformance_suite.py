"""What every table format must do, as tests over any format.

A plugin's author makes a class of its own from :class:`FormatConformance` and says in the fixture
``format_under_test`` which format it is about. Nothing but the public interface of tables, the
hooks and the format's own reader is used, but for one door: a table that is open, to call its hooks
again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.plugin import registry
from hudi_core.plugin.host import FormatHost
from hudi_core.services.opening import open_table
from hudi_core.spi import (
    PARENT_KEY,
    Action,
    Capability,
    CleanerPlan,
    CommitConflictError,
    CommitMetadata,
    CorruptMetadataError,
    HudiError,
    IncompleteCommitError,
    Instant,
    InstantTime,
    SchemaError,
    State,
    UnsupportedCapabilityError,
)
from hudi_core.txn.open_table import OpenTable

from .conformance_format import FormatUnderTest, bag, promise
from .conformance_trace import TRACE, Call

SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("city", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("value", pa.float64()),
    ]
)
FAST: Final = {"hoodie.fs.fsync": "false"}
CITIES: Final = ("rome", "oslo", None)


class Died(Exception):
    """The writer is no more."""


def rows(*keys: int, ts: int = 1) -> pa.Table:
    """Rows whose key decides their partition, as the index looks only there."""
    return pa.Table.from_pylist(
        [{"id": f"k{key}", "city": CITIES[key % 3], "ts": ts, "value": key + 0.5} for key in keys],
        SCHEMA,
    )


def wide(*keys: int, ts: int = 1) -> pa.Table:
    """Rows with a column that the table does not have at first."""
    return rows(*keys, ts=ts).append_column("more", pa.array([7] * len(keys), pa.int64()))


ACTIONS: Final[Mapping[str, Callable[[hudi.Table], Any]]] = {
    "insert": lambda table: table.insert(rows(6)),
    "bulk_insert": lambda table: table.bulk_insert(rows(6)),
    "upsert": lambda table: table.upsert(rows(0, 7, ts=2)),
    "delete": lambda table: table.delete(rows(0)),
    "insert_overwrite": lambda table: table.insert_overwrite(rows(3, ts=2)),
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(rows(1, ts=2)),
    "delete_partitions": lambda table: table.delete_partitions([{"city": "rome"}]),
}
"""Every operation on rows, done to the table that the tests begin with."""


class FormatConformance:
    """The suite."""

    @pytest.fixture
    def format_under_test(self) -> FormatUnderTest:
        raise NotImplementedError("say which format is under test")

    @pytest.fixture(autouse=True)
    def _trace(self) -> Iterator[None]:
        clear()
        yield
        clear()

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "table"

    @pytest.fixture
    def table(self, path: Path, format_under_test: FormatUnderTest) -> hudi.Table:
        made = create(path, format_under_test)
        made.insert(rows(0, 1, 2, 3, 4))
        TRACE.calls.clear()
        return made

    # --- hooks and what they answer --------------------------------------------------------------

    @pytest.mark.parametrize("name", ACTIONS)
    @promise("F01", "A write is told of once, by complete_write.")
    def test_a_write_is_told_once(self, table: hudi.Table, name: str) -> None:
        result = ACTIONS[name](table)
        assert TRACE.hooks() == ["complete_write"]
        [call] = TRACE.calls
        assert call.arguments["instant"] == result.instant
        assert call.receipt == result.receipt

    @promise("F02", "A rollback is told of before the deletion and after it, once each.")
    def test_a_rollback_is_told_twice(self, table: hudi.Table) -> None:
        result = table.upsert(rows(0, 6, ts=2))
        TRACE.calls.clear()
        rollback = table.rollback(result.instant)
        assert TRACE.hooks() == ["before_rollback", "complete_rollback"]
        before, after = TRACE.calls
        assert before.arguments["instant"].requested_time == result.instant.requested_time
        assert after.arguments["instant"] == rollback

    @promise("F03", "What a receipt names is where find_publication finds the instant.")
    def test_receipts_and_publications_agree(self, table: hudi.Table, path: Path) -> None:
        for action in ACTIONS.values():
            try:
                result = action(table)
            except hudi.HudiError:  # an order in which this one has nothing to do
                continue
            opened = open_at(path)
            found = opened.host.find_publication(opened.client, result.instant)
            assert found is not None
            assert found.version == result.receipt.version
            assert found.requested_time == result.instant.requested_time
            assert found.completion_time in (None, result.instant.completion_time)

    @pytest.mark.parametrize("name", [*ACTIONS, "rollback", "alter"])
    @promise("F04", "Any complete_* hook may be called again, and changes nothing then.")
    def test_hooks_can_be_replayed(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest, name: str
    ) -> None:
        perform(table, name, format_under_test)
        told = [call for call in TRACE.calls if call.hook.startswith("complete_")]
        assert told
        before = head(path), format_under_test.rows(path)
        for call in told:
            assert replay(path, call) == call.receipt.version
        assert (head(path), format_under_test.rows(path)) == before

    @promise("F05", "A replay long after changes nothing either.")
    def test_old_hooks_can_be_replayed(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        table.upsert(rows(0, ts=2))
        [call] = TRACE.calls
        table.upsert(rows(0, ts=3))
        table.insert(rows(6))
        before = head(path), format_under_test.rows(path)
        assert replay(path, call) == call.receipt.version
        assert (head(path), format_under_test.rows(path)) == before

    @promise("F06", "No instant is published that was never completed.")
    def test_only_completed_instants_are_published(self, table: hudi.Table, path: Path) -> None:
        opened = open_at(path)
        [write] = opened.timeline().completed_writes()
        for stranger in (
            Instant(write.requested_time, Action.SAVEPOINT, State.INFLIGHT),
            Instant(InstantTime("20991231000000000"), Action.COMMIT, State.REQUESTED),
        ):
            assert opened.host.find_publication(opened.client, stranger) is None

    @promise("F07", "To open the metadata again changes nothing, whether it may be made or not.")
    def test_initialize_can_be_repeated(self, table: hudi.Table, path: Path) -> None:
        opened = open_at(path)
        versions = {
            opened.host.initialize(opened.client, create=create).version
            for create in (False, True, False)
        }
        assert len(versions) == 1

    @promise("F08", "One plugin serves many tables, and mixes up none of them.")
    def test_two_tables_at_once(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest, tmp_path: Path
    ) -> None:
        other = create(tmp_path / "other", format_under_test)
        other.insert(rows(0, ts=9))
        table.upsert(rows(0, ts=2))
        other.upsert(rows(6))
        assert format_under_test.rows(path) == contents(rows(0, ts=2), rows(1, 2, 3, 4))
        assert format_under_test.rows(tmp_path / "other") == contents(rows(0, ts=9), rows(6))

    @promise("F09", "The name of the format is compared without regard to case.")
    def test_names_have_no_case(self, path: Path, format_under_test: FormatUnderTest) -> None:
        shouted = replace(format_under_test, name=format_under_test.name.upper())
        create(path, shouted).insert(rows(0))
        assert hudi.Table.open(str(path)).config.table_format == format_under_test.name

    # --- the rows --------------------------------------------------------------------------------

    @pytest.mark.parametrize("name", ACTIONS)
    @promise("F10", "After every operation the format's own reader sees the rows of the table.")
    def test_the_rows_are_the_same(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest, name: str
    ) -> None:
        ACTIONS[name](table)
        assert format_under_test.rows(path) == ours(path)

    @promise("F11", "Time travel finds at each instant the rows that there were.")
    def test_time_travel(self, table: hudi.Table, path: Path) -> None:
        states = {}
        for ts in (2, 3, 4):
            instant = table.upsert(rows(0, ts, ts=ts)).instant
            states[instant] = ours(path)
        assert len({repr(sorted(state)) for state in states.values()}) == 3
        for instant, state in states.items():
            then = hudi.Table.open(str(path)).to_arrow(as_of=instant)
            assert bag(then.to_pylist()) == state

    @promise("F12", "A column that is added is there at once, and holds the values of later rows.")
    def test_a_column_is_added(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        declared = open_at(path).host.capabilities
        if Capability.ADD_COLUMN not in declared:
            with pytest.raises(UnsupportedCapabilityError):
                table.alter(add_columns={"more": pa.int64()})
            return
        table.alter(add_columns={"more": pa.int64()})
        assert TRACE.hooks() == ["complete_schema_change"]
        assert format_under_test.rows(path) == contents(rows(0, 1, 2, 3, 4))
        table.upsert(wide(0, 6, ts=2))
        expected = contents(rows(1, 2, 3, 4), wide(0, 6, ts=2))
        assert format_under_test.rows(path) == expected == ours(path)

    # --- rollback --------------------------------------------------------------------------------

    @promise("F13", "What is rolled back leaves the lineage, and what comes after it is in it.")
    def test_the_lineage_after_a_rollback(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        gone = table.upsert(rows(0, 6, ts=2)).instant
        rollback = table.rollback(gone)
        opened = open_at(path)
        assert opened.host.find_publication(opened.client, gone) is None
        assert opened.host.find_publication(opened.client, rollback) is not None
        assert format_under_test.rows(path) == contents(rows(0, 1, 2, 3, 4)) == ours(path)
        later = table.upsert(rows(0, ts=3)).instant
        assert open_at(path).host.find_publication(opened.client, later) is not None
        assert format_under_test.rows(path) == contents(rows(0, ts=3), rows(1, 2, 3, 4))
        assert gone not in hudi.Table.open(str(path)).timeline.completed_writes()

    @promise("F14", "A rollback is told of while all files are there; after that none is named.")
    def test_the_format_goes_back_before_files_are_deleted(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        result = table.upsert(rows(0, 6, ts=2))
        files = [path / str(status.stat.path) for status in result.statuses]
        seen: list[object] = []

        def look(call: Call) -> None:
            if call.hook == "before_rollback":
                seen.append(all(file.exists() for file in files))
                if two_step(path):
                    seen.append(format_under_test.rows(path) == contents(rows(0, 1, 2, 3, 4)))

        TRACE.ended = look
        table.rollback(result.instant)
        assert seen == ([True, True] if two_step(path) else [True])
        assert not any(file.exists() for file in files)

    # --- two steps -------------------------------------------------------------------------------

    @promise("F15", "What only step 1 holds nobody sees, and the next write publishes it first.")
    def test_a_writer_that_dies_between_the_steps(
        self,
        table: hudi.Table,
        path: Path,
        format_under_test: FormatUnderTest,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        old, new = contents(rows(0, 1, 2, 3, 4)), contents(rows(0, 6, ts=2), rows(1, 2, 3, 4))
        die_before_step_2(monkeypatch, lambda: table.upsert(rows(0, 6, ts=2)))
        if not two_step(path):
            assert ours(path) == new
            return
        assert ours(path) == old == format_under_test.rows(path)
        table.insert(rows(7))
        assert format_under_test.rows(path) == ours(path) == new + contents(rows(7))
        replayed, own = [call for call in TRACE.calls if call.hook == "complete_write"]
        done = [call.arguments["instant"].completion_time for call in (replayed, own)]
        assert done == sorted(done)

    @promise("F16", "Step 2 is refused where the format is not in the state recorded as parent.")
    def test_step_2_is_compared_and_set_on_its_parent(
        self, table: hudi.Table, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not two_step(path):
            return
        die_before_step_2(monkeypatch, lambda: table.upsert(rows(0, ts=2)))
        opened, instant, metadata = pending(path)
        before = head(path)
        assert metadata.extra_metadata[PARENT_KEY] == before
        other = {**metadata.extra_metadata, PARENT_KEY: "4711"}
        with pytest.raises(CommitConflictError):
            opened.host.complete_write(
                opened.client, replace(metadata, extra_metadata=other), instant
            )
        assert head(path) == before
        assert opened.host.find_publication(opened.client, instant) is None
        done = opened.host.complete_write(opened.client, metadata, instant)
        assert done.version != before

    @promise("F17", "An instant that was fenced off is never taken again.")
    def test_what_is_fenced_off_stays_out(
        self, table: hudi.Table, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not two_step(path):
            return
        die_before_step_2(monkeypatch, lambda: table.upsert(rows(0, ts=2)))
        opened, instant, metadata = pending(path)
        before = head(path)
        fenced = replace(instant, state=State.INFLIGHT)
        opened.host.before_rollback(opened.client, fenced)
        now = head(path)
        assert now != before
        opened.host.before_rollback(opened.client, fenced)
        assert head(path) == now
        for parent in (before, now):
            extra = {**metadata.extra_metadata, PARENT_KEY: parent}
            with pytest.raises(IncompleteCommitError):
                opened.host.complete_write(
                    opened.client, replace(metadata, extra_metadata=extra), instant
                )
        assert opened.host.find_publication(opened.client, instant) is None

    @promise("F18", "A format that is only to fence an instant off leaves one that it holds alone.")
    def test_what_is_held_is_not_fenced_off(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        instant = table.upsert(rows(0, ts=2)).instant
        if not two_step(path):
            return
        opened, before = open_at(path), (head(path), format_under_test.rows(path))
        opened.host.before_rollback(opened.client, replace(instant, state=State.INFLIGHT))
        assert (head(path), format_under_test.rows(path)) == before
        assert opened.host.find_publication(opened.client, instant) is not None

    # --- clean and archive -----------------------------------------------------------------------

    @promise("F19", "A clean that would delete a file of the present state is refused.")
    def test_live_files_are_not_cleaned(self, table: hudi.Table, path: Path) -> None:
        if not two_step(path):
            return
        opened = open_at(path)
        [live, *_] = hudi.Table.open(str(path)).file_slices()
        assert live.base_file is not None
        plan = CleanerPlan(
            None,
            "",
            "KEEP_LATEST_COMMITS",
            {live.partition_path: (live.base_file.path.rpartition("/")[2],)},
        )
        clean = Instant(InstantTime("20991231000000000"), Action.CLEAN, State.INFLIGHT)
        before = head(path)
        with pytest.raises(HudiError):
            opened.host.before_clean(opened.client, plan, clean)
        assert head(path) == before

    @promise("F20", "Instants that were archived stay complete, however often that is said.")
    def test_archived_instants_are_complete(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        table.upsert(rows(0, ts=2))
        table.upsert(rows(0, ts=3))
        opened = open_at(path)
        first, second, last = opened.timeline().completed_writes()
        for _ in range(2):
            opened.host.archive_instants(opened.client, [first, second])
        now = open_at(path)
        for instant in (first, second, last):
            assert now.host.find_publication(now.client, instant) is not None
        assert [*now.timeline().completed_writes()] == [first, second, last]
        table.upsert(rows(0, ts=4))
        assert format_under_test.rows(path) == contents(rows(0, ts=4), rows(1, 2, 3, 4))

    # --- what is refused -------------------------------------------------------------------------

    @promise("F21", "Metadata that is gone is an error for readers and writers, never no rows.")
    def test_gone_metadata_is_an_error(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        if format_under_test.lose is None:
            return
        format_under_test.lose(path)
        before = files_of(path)
        with pytest.raises(CorruptMetadataError):
            hudi.Table.open(str(path)).to_arrow()
        with pytest.raises(CorruptMetadataError):
            hudi.Table.open(str(path)).upsert(rows(0, ts=2))
        assert data_files(files_of(path)) == data_files(before)

    @promise("F22", "A commit of somebody who knows nothing of Hudi stops writes, not reads.")
    def test_foreign_commits_are_refused(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        if format_under_test.intrude is None:
            return
        format_under_test.intrude(path)
        before = data_files(files_of(path))
        with pytest.raises(HudiError):
            hudi.Table.open(str(path)).upsert(rows(0, ts=2))
        assert data_files(files_of(path)) == before
        assert ours(path) == contents(rows(0, 1, 2, 3, 4))

    @pytest.mark.parametrize(
        ("capability", "change"),
        [
            (Capability.RENAME_COLUMN, {"rename": {"value": "worth"}}),
            (Capability.DROP_COLUMN, {"drop": "value"}),
            (Capability.PROMOTE_TYPE, {"promote": {"ts": pa.decimal128(20, 0)}}),
        ],
        ids=str,
    )
    @promise("F23", "A change that the format does not declare is refused before any file is made.")
    def test_undeclared_changes_are_refused(
        self, table: hudi.Table, path: Path, capability: Capability, change: Mapping[str, Any]
    ) -> None:
        if capability in open_at(path).host.capabilities:
            return
        before = files_of(path)
        with pytest.raises((UnsupportedCapabilityError, SchemaError)):
            table.alter(**change)
        assert files_of(path) == before
        assert TRACE.hooks() == []

    @pytest.mark.parametrize(
        ("capability", "partition_by"),
        [(Capability.UNPARTITIONED, None), (Capability.IDENTITY_PARTITIONS, "city")],
        ids=str,
    )
    @promise("F24", "A table that the format does not declare is refused, and nothing is made.")
    def test_undeclared_tables_are_refused(
        self,
        path: Path,
        format_under_test: FormatUnderTest,
        capability: Capability,
        partition_by: str | None,
    ) -> None:
        host = FormatHost.load(registry.FormatRegistry(), format_under_test.name)
        if capability in host.capabilities:
            create(path, format_under_test, partition_by).insert(rows(0, 1))
            return
        with pytest.raises(UnsupportedCapabilityError):
            create(path, format_under_test, partition_by)
        assert not files_of(path)

    @promise("F25", "Without the plugin its tables fail, naming the package, and others go on.")
    def test_a_plugin_that_is_not_installed(
        self,
        table: hudi.Table,
        path: Path,
        tmp_path: Path,
        format_under_test: FormatUnderTest,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        native = replace(format_under_test, name="native")
        create(tmp_path / "native", native).insert(rows(0))
        found, name = registry._installed, format_under_test.name
        monkeypatch.setattr(
            registry, "_installed", lambda group: [one for one in found(group) if one.name != name]
        )
        before = files_of(path)
        package = "hudi-core" if name == "native" else f"hudi-{name}-format"
        for use in (
            lambda: hudi.Table.open(str(path)).to_arrow(),
            lambda: create(tmp_path / "new", format_under_test),
        ):
            with pytest.raises(HudiError, match=package):
                use()
        assert files_of(path) == before
        assert not files_of(tmp_path / "new")
        if name != "native":
            hudi.Table.open(str(tmp_path / "native")).upsert(rows(0, 6, ts=2))
            assert ours(tmp_path / "native") == contents(rows(0, 6, ts=2))


# --- parts of tests -------------------------------------------------------------------------------


def clear() -> None:
    TRACE.calls.clear()
    TRACE.begins = lambda hook, arguments: None
    TRACE.ended = lambda call: None


def create(
    path: Path, format_under_test: FormatUnderTest, partition_by: str | None = "city", **more: str
) -> hudi.Table:
    options = {**FAST, **format_under_test.options, "hoodie.table.format": format_under_test.name}
    return hudi.Table.create(
        str(path),
        SCHEMA,
        name="conformance",
        record_key="id",
        partition_by=partition_by,
        ordering_field="ts",
        options={**options, **more},
    )


def open_at(path: Path) -> OpenTable:
    return open_table(str(path), FAST)


def ours(path: Path) -> Counter[str]:
    return bag(hudi.Table.open(str(path)).to_arrow().to_pylist())


def contents(*tables: pa.Table) -> Counter[str]:
    return sum((bag(table.to_pylist()) for table in tables), Counter())


def head(path: Path) -> str:
    """Return the version of the state that the format is in."""
    opened = open_at(path)
    return opened.host.initialize(opened.client, create=False).version


def two_step(path: Path) -> bool:
    return Capability.SINGLE_STEP not in open_at(path).host.capabilities


def perform(table: hudi.Table, name: str, format_under_test: FormatUnderTest) -> None:
    if name == "alter":
        if Capability.ADD_COLUMN in open_at(Path(table.path)).host.capabilities:
            table.alter(add_columns={"more": pa.int64()})
        else:
            table.insert(rows(6))
    elif name == "rollback":
        instant = table.upsert(rows(0, ts=2)).instant
        TRACE.calls.clear()
        table.rollback(instant)
    else:
        ACTIONS[name](table)


def replay(path: Path, call: Call) -> str:
    """Call a hook again with what it was called with; return the version of the receipt."""
    opened = open_at(path)
    given = [
        value
        for name, value in call.arguments.items()
        if name not in ("meta_client", "view_manager")
    ]
    version: str = getattr(opened.host, call.hook)(opened.client, *given).version
    return version


def die_before_step_2(monkeypatch: pytest.MonkeyPatch, write: Callable[[], object]) -> None:
    def die(*arguments: object, **named: object) -> None:
        raise Died

    with monkeypatch.context() as patched:
        patched.setattr(FormatHost, "complete_write", die)
        with pytest.raises(Died):
            write()


def pending(path: Path) -> tuple[OpenTable, Instant, CommitMetadata]:
    """Return the last write of the Hudi timeline, which is pending publication."""
    opened = open_at(path)
    instant = opened.client.timeline().completed_writes()[-1]
    return opened, instant, opened.client.read_commit(instant)


def files_of(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def data_files(files: Mapping[str, bytes]) -> set[str]:
    return {name for name in files if name.endswith(".parquet") and "/.hoodie/" not in name}
