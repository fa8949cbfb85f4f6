"""Formats whose authors made mistakes: what is asked of them, and what is said of it."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hudi_conformance.formats.trace import install

import hudi_core as hudi
from hudi_core.errors import (
    CorruptMetadataError,
    HudiError,
    InvalidOptionError,
    LockError,
    NotATableError,
    OptionConflictError,
    PluginContractError,
    PluginHookError,
    SchemaError,
    StorageError,
    UnknownOptionWarning,
    UnsupportedTableError,
)
from hudi_core.extension.guard import Guard
from hudi_core.model.instant import State
from hudi_core.model.instant_time import InstantTime
from hudi_core.plugin.guarded_index import GuardedLock
from hudi_core.plugin.host import FormatHost
from hudi_core.services.opening import open_table
from hudi_core.spi import (
    FileColumns,
    FileIndex,
    FileStatus,
    FormatCommit,
    FormatOption,
    InProcessLock,
    NamedFile,
    PartitionPath,
    ValueRanges,
)
from hudi_core.txn.creation import CREATION_PATH
from hudi_core.txn.table_lock import TableLock
from tests.formats.two_steps import CITIES, batch, ours
from tests.formats.wrong_format import FAULTS, Lister, RicherLister, answer

WRONG = {"hoodie.table.format": "wrong", "hoodie.table.name": "wrong"}
KEYS = {
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
}
PLAIN = {"hoodie.metadata.enable": "false"}
PREFIX = "hoodie.table.format.wrong."
ERROR = sqlite3.OperationalError("database is locked")
Fault = Callable[[Callable[[], Any]], Any]


def create(path: Path, **options: str) -> hudi.Table:
    own = {
        key if key.startswith("hoodie.") else f"{PREFIX}{key}": value
        for key, value in options.items()
    }
    given = {**WRONG, **KEYS, **own}
    return hudi.Table.create(path, CITIES, options=given)


def fails(error: BaseException) -> Fault:
    def fault(right: Callable[[], Any]) -> Any:
        raise error

    return fault


def gives(value: Any) -> Fault:
    return lambda right: value


def reads(table: hudi.Table) -> dict[str, int]:
    return ours(table.path)


def writes(table: hudi.Table) -> object:
    return hudi.Table.open(table.path, PLAIN).upsert(batch(2, "a"))


@pytest.fixture(autouse=True)
def without_faults() -> Iterator[None]:
    yield
    FAULTS.clear()


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("site")
    formats = {"wrong": "wrong_format:WrongFormat", "toy": "toy_format:ToyFormat"}
    install(folder, {name: f"tests.formats.{one}" for name, one in formats.items()})
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        yield


@pytest.fixture(scope="module")
def shared(installed: None, tmp_path_factory: pytest.TempPathFactory) -> hudi.Table:
    """A table of which nothing is asked that changes its rows."""
    made = create(tmp_path_factory.mktemp("shared") / "t", **PLAIN)
    made.insert(batch(1, "a", "b", "x"))
    return made


@pytest.fixture
def table(path: Path) -> hudi.Table:
    made = create(path, **PLAIN)
    made.insert(batch(1, "a", "b", "x"))
    return made


Act = Callable[[hudi.Table], object]


def reads_some(table: hudi.Table) -> object:
    return hudi.Table.open(table.path).to_arrow(filter=[("ts", ">", 5)])


def finds(table: hudi.Table) -> object:
    return open_table(table.path, {}).timeline().find(InstantTime("20260101000000000"))


def validates(table: hudi.Table) -> object:
    return hudi.Table.open(table.path).validate()


ASKED: dict[str, tuple[str, Act]] = {
    "active_timeline": ("TimelineFactory.active_timeline", reads),
    "instants": ("TimelineView.instants", writes),
    "completed_writes": ("TimelineView.completed_writes", reads),
    "is_committed": ("TimelineView.is_committed", reads),
    "find": ("TimelineView.find", finds),
    "create": ("MetadataFactory.create", reads),
    "list_partitions": ("FileIndex.list_partitions", reads),
    "list_files": ("FileIndex.list_files", reads),
    "partition_ranges": ("FileIndex.partition_ranges", reads_some),
    "file_ranges": ("FileIndex.file_ranges", reads_some),
    "named_files": ("FileIndex.named_files", validates),
    "leftovers": ("FileIndex.leftovers", validates),
    "try_lock": ("LockProvider.try_lock", writes),
    "lease_left": ("LockProvider.lease_left", writes),
    "excludes_processes": ("LockProvider.excludes_processes", writes),
    "granularity": ("ConflictResolutionStrategy.granularity", writes),
    "candidates": ("ConflictResolutionStrategy.candidates", writes),
    "conflict": ("ConflictResolutionStrategy.conflict", writes),
}
"""What a format is asked: how it is called in errors, and who asks it."""


CONFLICTING = {"granularity": {"conflict": gives("both did something")}}
"""What has to be answered for a question to be asked."""


GIVEN_BY = {
    "instants": "TimelineFactory.active_timeline",
    "excludes_processes": "get_lock_provider",
    "granularity": "get_conflict_resolution_strategy",
}
"""Where a property may be asked first: whether there is one."""


@pytest.mark.parametrize("asked", ASKED)
def test_an_error_of_its_own_is_named_once(asked: str, shared: hudi.Table) -> None:
    method, act = ASKED[asked]
    FAULTS.update({**CONFLICTING.get(asked, {}), asked: fails(ERROR)})
    with pytest.raises(PluginHookError) as caught:
        act(shared)
    assert caught.value.hook in (method, GIVEN_BY.get(asked))
    assert caught.value.__cause__ is ERROR
    assert "'wrong' failed in" in str(caught.value)
    assert "database is locked" in str(caught.value)


@pytest.mark.parametrize("asked", ["active_timeline", "list_files", "try_lock", "candidates"])
def test_an_error_of_the_project_passes(asked: str, shared: hudi.Table) -> None:
    error = CorruptMetadataError("toy", "it is gone")
    FAULTS[asked] = fails(error)
    with pytest.raises(CorruptMetadataError) as caught:
        ASKED[asked][1](shared)
    assert caught.value is error


ROME = PartitionPath("rome")


ANSWERS: list[tuple[str, Any]] = [
    ("active_timeline", None),
    ("active_timeline", 7),
    ("instants", None),
    ("completed_writes", ["20260101000000000"]),
    ("is_committed", None),
    ("find", "20260101000000000"),
    ("create", None),
    ("create", {}),
    ("list_partitions", None),
    ("list_partitions", "rome"),
    ("list_partitions", [7]),
    ("list_files", None),
    ("list_files", []),
    ("list_files", {}),
    ("list_files", {ROME: [FileStatus("rome/x", 1)]}),
    ("list_files", {ROME: None, PartitionPath("oslo"): None}),
    ("list_files", {ROME: ["rome/x"], PartitionPath("oslo"): ["oslo/x"]}),
    ("partition_ranges", []),
    ("file_ranges", {}),
    ("named_files", "rome/x"),
    ("leftovers", 7),
    ("try_lock", None),
    ("lease_left", None),
    ("lease_left", float("nan")),
    ("excludes_processes", None),
    ("granularity", "table"),
    ("candidates", None),
    ("candidates", [7]),
    ("conflict", True),
]


@pytest.mark.parametrize(("asked", "given"), ANSWERS)
def test_an_answer_of_another_kind_is_a_breach(asked: str, given: Any, shared: hudi.Table) -> None:
    method, act = ASKED[asked]
    FAULTS.update({**CONFLICTING.get(asked, {}), asked: gives(given)})
    with pytest.raises(PluginContractError, match=f"'wrong' breaks its contract: {method}"):
        act(shared)


def test_ranges_of_fewer_files_than_were_asked_about(shared: hudi.Table) -> None:
    def shorter(right: Callable[[], Any]) -> Any:
        found = right()
        return type(found).unknown(found.minimum.type, len(found) - 1)

    FAULTS["file_ranges"] = shorter
    with pytest.raises(PluginContractError, match=r"FileIndex\.file_ranges returned ranges"):
        reads_some(shared)


def ranges(count: int, **changed: Any) -> ValueRanges:
    unknown = ValueRanges.unknown(pa.int64(), count)
    facts = {name: getattr(unknown, name) for name in ("minimum", "maximum", *MASKS)}
    return ValueRanges(**{**facts, **changed})


MASKS = ("may_be_null", "may_have_value")
KIND = "FileIndex.file_ranges returned ranges whose "
MISFITS: dict[str, Callable[[int], ValueRanges]] = {
    "minimum is of type string, not int64": lambda n: ranges(n, minimum=pa.nulls(n, pa.string())),
    "maximum is a ChunkedArray, not": lambda n: ranges(
        n, maximum=pa.chunked_array([pa.nulls(n, pa.int64())])
    ),
    "minimum has 1 values, not 2": lambda n: ranges(n, minimum=pa.nulls(n - 1, pa.int64())),
    "may_be_null has 1 values, not 2": lambda n: ranges(n, may_be_null=np.ones(n - 1, np.bool_)),
    "may_have_value is no array of booleans": lambda n: ranges(n, may_have_value=[True] * n),
    "may_be_null is no array of booleans": lambda n: ranges(n, may_be_null=pa.array([1] * n)),
}


@pytest.mark.parametrize("said", MISFITS)
def test_ranges_that_do_not_fit_are_named(said: str, shared: hudi.Table) -> None:
    FAULTS["file_ranges"] = lambda right: MISFITS[said](len(right()))
    with pytest.raises(PluginContractError, match=KIND + said):
        reads_some(shared)


def test_masks_may_be_arrays_of_arrow(shared: hudi.Table) -> None:
    """A null among them says that there may be."""
    everything = reads(shared)

    def by_arrow(right: Callable[[], Any]) -> ValueRanges:
        n = len(right())
        return ranges(
            n, may_be_null=pa.array([None, False][:n]), may_have_value=pa.array([True] * n)
        )

    FAULTS["file_ranges"] = by_arrow
    found = hudi.Table.open(shared.path).to_arrow(filter=[("ts", ">=", min(everything.values()))])
    assert found.num_rows == len(everything)
    nowhere = ranges(2, may_have_value=pa.chunked_array([[True], [None]]))
    assert nowhere.may_have_value.tolist() == [True, True]
    assert nowhere.may_be_null.dtype == np.bool_


class ColumnLister(Lister):
    """Lists files as columns."""

    def list_columns(self, partitions: Sequence[PartitionPath]) -> FileColumns:
        files = self.list_files(partitions)
        return answer("list_columns", lambda: FileColumns.of_statuses(files))


def test_files_are_listed_as_columns_by_who_can(shared: hudi.Table) -> None:
    asked = []

    def noted(right: Callable[[], Any]) -> Any:
        asked.append(right())
        return asked[-1]

    FAULTS["create"] = lambda right: ColumnLister(right().client)
    FAULTS["list_columns"] = noted
    assert reads_some(shared).num_rows == 0  # type: ignore[attr-defined]
    assert asked
    wrong: dict[str, Fault] = {
        "list_columns returned None, not FileColumns": gives(None),
        "list_columns says nothing of the partition": lambda right: right().select([]),
        "names no file of the partition": lambda right: right().rows(np.empty(0, np.int64)),
    }
    for said, fault in wrong.items():
        FAULTS["list_columns"] = fault
        with pytest.raises(PluginContractError, match=said):
            reads_some(shared)


def test_a_receipt_is_looked_at_whole(path: Path) -> None:
    FAULTS["create_table"] = gives(FormatCommit("1", Path("/t")))  # type: ignore[arg-type]
    with pytest.raises(PluginContractError, match="receipt of create has the location"):
        create(path)


def test_a_guarded_lister_can_do_what_the_format_can(shared: hudi.Table) -> None:
    def lister(plain: type[Lister]) -> FileIndex:
        FAULTS["create"] = lambda right: plain(right().client)
        return open_table(shared.path, {}).lister()

    richer, poorer = lister(RicherLister), lister(Lister)
    files = richer.list_columns([ROME])
    assert richer.file_ranges(files, "ts", pa.int64()) is not None
    assert poorer.file_ranges(files, "ts", pa.int64()) is None
    assert poorer.partition_ranges([ROME], "ts", pa.int64()) is None
    assert poorer.groups_of_values("ts", pa.array([1])) is None
    assert poorer.named_files() is None
    assert list(poorer.leftovers()) == []
    assert [one.path for one in richer.named_files() or ()]
    named = [NamedFile("x", 1)]
    FAULTS["named_files"] = lambda right: named[0]
    assert {one.path for one in richer.named_files() or ()} == {"x"}
    assert poorer.deleted_positions(["x"]) is None
    assert [*(richer.deleted_positions(["x"]) or {})] == ["x"]
    wrong_ones: tuple[Any, ...] = ([], {"x": [0, 7]}, {"x": np.array([0.5])})
    for wrong in wrong_ones:
        FAULTS["deleted_positions"] = gives(wrong)
        with pytest.raises(PluginContractError, match=r"FileIndex\.deleted_positions"):
            richer.deleted_positions(["x"])


def emptied(right: Callable[[], Any]) -> Any:
    found = right()
    return dict.fromkeys(found, ()) if isinstance(found, dict) else []


@pytest.mark.parametrize("asked", ["list_partitions", "list_files"])
@pytest.mark.parametrize("metadata_table", ["true", "false"])
def test_rows_do_not_disappear(asked: str, metadata_table: str, path: Path) -> None:
    table = hudi.Table.create(
        path, CITIES, options={**WRONG, **KEYS, "hoodie.metadata.enable": metadata_table}
    )
    table.insert(batch(1, "a", "x"))
    table.insert(batch(1, "b"))
    FAULTS[asked] = emptied
    with pytest.raises(PluginContractError, match=rf"{asked} names no file .*\.parquet has rows"):
        reads(table)


def test_a_row_is_not_put_in_twice(table: hudi.Table) -> None:
    FAULTS["list_files"] = emptied
    with pytest.raises(PluginContractError, match=r"list_files names no file .* 'rome'"):
        writes(table)
    FAULTS.clear()
    assert reads(table) == {"a": 1, "b": 1, "x": 1}
    writes(table)
    assert reads(table) == {"a": 2, "b": 1, "x": 1}


def test_nothing_is_an_answer_where_there_are_no_rows(path: Path) -> None:
    table = create(path)
    assert reads(table) == {}  # no partition
    table.insert(batch(1, "a"))
    table.insert(batch(1, "x"))  # a partition that comes
    table.delete(batch(2, "x"))  # one whose rows are gone, in a file without rows
    assert reads(table) == {"a": 1}
    table.upsert(batch(3, "x"))
    table.delete_partitions([{"city": "rome"}])
    assert reads(table) == {"x": 3}
    table.insert(batch(4, "a"))
    assert reads(table) == {"x": 3, "a": 4}


def test_a_writer_at_work_is_no_mistake_of_the_format(table: hudi.Table) -> None:
    """The partition is emptied after the timeline was read, and before the files are listed."""

    def after_another(right: Callable[[], Any]) -> Any:
        FAULTS.clear()
        other = hudi.Table.open(table.path)
        other.delete_partitions([{"city": "oslo"}])
        return right()

    FAULTS["list_files"] = after_another
    assert reads(table) == {"a": 1, "b": 1}


def test_an_answer_that_is_older_than_the_timeline_is_no_mistake(table: hudi.Table) -> None:
    def older(right: Callable[[], Any]) -> Any:
        FAULTS.clear()
        return emptied(right)

    FAULTS["list_files"] = older
    assert reads(table) == {}  # as of before the write; as it was


def test_a_format_refuses_a_table_before_the_first_file(path: Path) -> None:
    FAULTS["check_creation"] = fails(UnsupportedTableError("t", "is on the moon", "Go there."))
    with pytest.raises(UnsupportedTableError, match="on the moon"):
        create(path)
    with pytest.raises(UnsupportedTableError, match="on the moon"):
        hudi.write(batch(1, "a"), path, options={**WRONG, **KEYS})
    assert not (path).exists()


def test_a_table_to_be_is_shown_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = []

    def look(self: FormatHost, client: Any) -> None:
        shown.append(
            (client.base_path, client.schema.arrow.names, client.format_options, client.config.name)
        )
        assert client.timeline().instants == ()

    monkeypatch.setattr(FormatHost, "check_creation", look)
    create(path, pace="fast")
    assert shown == [(f"{path}", CITIES.names, {"pace": "fast"}, "wrong")]


@pytest.mark.parametrize("at", ["before", "after"])
def test_a_creation_that_failed_is_made_good_by_the_next(at: str, path: Path) -> None:
    def fail(right: Callable[[], Any]) -> Any:
        if at == "after":
            right()
        raise ERROR

    FAULTS["create_table"] = fail
    with pytest.raises(PluginHookError, match=r"create: .*database is locked"):
        create(path)
    FAULTS.clear()
    assert (path / CREATION_PATH).exists()
    with pytest.raises(NotATableError, match=r"whose creation was not finished\. Create it again"):
        hudi.Table.open(path)
    result = hudi.write(batch(1, "a"), path, options={**WRONG, **KEYS})
    assert result is not None
    assert result.inserted == 1
    assert not (path / CREATION_PATH).exists()
    assert hudi.Table.open(path).validate().is_valid


def test_a_refusal_in_the_middle_leaves_nothing(path: Path) -> None:
    def refuse(right: Callable[[], Any]) -> Any:
        right()
        raise SchemaError("There is no such column", "Add it.")

    FAULTS["create_table"] = refuse
    with pytest.raises(SchemaError, match="no such column"):
        create(path)
    assert [one for one in path.rglob("*") if one.is_file()] == []


def test_what_a_dead_creator_left_gives_way_to_another_table(path: Path) -> None:
    FAULTS["create_table"] = lambda right: (right(), fails(ERROR)(right))
    with pytest.raises(PluginHookError):
        create(path)
    assert (path / ".hoodie/toy").exists()
    made = hudi.Table.create(path, pa.schema([("k", pa.int64())]), record_key="k")
    made.insert(pa.table({"k": [1]}))
    assert not (path / ".hoodie/toy").exists()
    assert made.format == "native"
    assert made.validate().is_valid


@pytest.mark.parametrize("mine", ["mine.parquet", "notes.txt", "sub/data.json", "x/.hoodie/a"])
def test_files_beside_what_a_dead_creator_left_are_not_deleted(mine: str, path: Path) -> None:
    FAULTS["create_table"] = fails(StorageError("It does not answer", "Wait."))
    with pytest.raises(StorageError):
        create(path)
    file = path / mine
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"PAR1")
    FAULTS.clear()
    with pytest.raises(NotATableError, match=rf"holds other files \({mine}\)"):
        create(path)
    FAULTS["create_table"] = fails(SchemaError("There is no such column", "Add it."))
    with pytest.raises((NotATableError, SchemaError)):
        create(path)
    assert file.exists()
    FAULTS.clear()
    file.unlink()
    create(path)


def test_files_that_come_while_a_creation_is_refused_are_not_deleted(path: Path) -> None:
    def refuse(right: Callable[[], Any]) -> Any:
        right()
        (path / "notes.txt").write_text("mine")
        raise SchemaError("There is no such column", "Add it.")

    FAULTS["create_table"] = refuse
    with pytest.raises(SchemaError, match="no such column"):
        create(path)
    assert [one.name for one in path.rglob("*") if one.is_file()] == ["notes.txt"]


def _hearts() -> set[str]:
    return {one.name for one in threading.enumerate() if one.name.startswith("heartbeat-")}


@pytest.fixture(autouse=True)
def hearts() -> Callable[[], list[str]]:
    """What beats since the test began: tests before it may have left writers that died."""
    before = _hearts()
    return lambda: sorted(_hearts() - before)


def pending(table: hudi.Table) -> list[str]:
    instants = open_table(table.path, {}).client.timeline().instants
    return [one.requested_time for one in instants if one.state is not State.COMPLETED]


def failing_unlock(call: int) -> Fault:
    """Give the lock back, and fail all the same at that call."""
    calls = []

    def unlock(right: Callable[[], Any]) -> Any:
        calls.append(right())
        if len(calls) == call:
            raise ERROR

    return unlock


def test_a_lock_that_is_not_given_back_leaves_no_beating_heart(
    table: hudi.Table, hearts: Callable[[], list[str]]
) -> None:
    FAULTS["unlock"] = failing_unlock(1)
    with pytest.raises(PluginHookError, match=r"LockProvider\.unlock"):
        writes(table)
    assert hearts() == []
    assert pending(table) == []
    assert not list(Path(table.path, ".hoodie/.heartbeat").iterdir())
    FAULTS.clear()
    writes(table)
    assert reads(table)["a"] == 2


def test_a_commit_that_took_place_is_no_failure(
    table: hudi.Table, caplog: pytest.LogCaptureFixture, hearts: Callable[[], list[str]]
) -> None:
    FAULTS["unlock"] = failing_unlock(2)
    assert hudi.Table.open(table.path).upsert(batch(2, "a")).updated == 1
    assert reads(table)["a"] == 2
    assert hearts() == []
    assert "could not be given back" in caplog.text


def test_the_first_error_is_told(table: hudi.Table, hearts: Callable[[], list[str]]) -> None:
    FAULTS["complete_write"] = fails(ERROR)
    FAULTS["unlock"] = failing_unlock(2)
    with pytest.raises(HudiError, match="does not hold it yet") as caught:
        writes(table)
    assert "LockProvider.unlock" in "".join(caught.value.__notes__)
    assert hearts() == []


class Stuck(InProcessLock):
    def unlock(self) -> None:
        raise ERROR


def test_a_lock_that_stays_taken_is_not_asked_for_again_and_again(tmp_path: Path) -> None:
    lock = TableLock(GuardedLock(Guard("wrong"), Stuck(str(tmp_path))), 0.01, 9, 3600)
    with pytest.raises(PluginHookError), lock.held():
        pass
    with pytest.raises(LockError, match="not free"), lock.held():
        pass


def test_a_receipt_keeps_its_location_where_the_hook_fails_afterwards(
    table: hudi.Table, caplog: pytest.LogCaptureFixture
) -> None:
    def fail_afterwards(right: Callable[[], Any]) -> Any:
        right()
        raise ERROR

    FAULTS["complete_write"] = fail_afterwards
    with caplog.at_level(logging.WARNING, "hudi_core"):
        result = hudi.Table.open(table.path).upsert(batch(2, "a"))
    assert result.receipt.location == f"{table.path}/.hoodie/toy"
    assert result.receipt.version == "3"
    assert "the wrong format holds" in caplog.text
    assert "database is locked" in caplog.text


def test_a_bad_value_is_refused_before_the_first_file(path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=rf"{PREFIX}pace='quick'.*Supported: slow, fast"):
        create(path, pace="quick")
    with pytest.raises(InvalidOptionError, match=rf"{PREFIX}tries='x'"):
        create(path, tries="x")
    assert not (path).exists()


def test_a_value_that_is_to_be_kept_is_kept(path: Path) -> None:
    made = create(path, pace="FAST", tries="7")
    assert made.config.raw[f"{PREFIX}pace"] == "FAST"
    assert f"{PREFIX}tries" not in made.config.raw
    client = open_table(made.path, {}).client
    pace = FormatOption("pace", "slow", str, "How fast.", ("slow", "fast"))
    assert pace.read(client) == "fast"
    assert FormatOption("tries", 3, int, "How often.").read(client) == 3
    with pytest.raises(OptionConflictError, match="contradicts the table"):
        hudi.Table.open(made.path, {f"{PREFIX}pace": "slow"})


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("trie", "no effect; did you mean hoodie.table.format.wrong.tries?"),
        ("nonsense", "is not a known option of the wrong format and has no effect."),
        ("engine.kin", "format; did you mean hoodie.table.format.wrong.engine.kind?"),
    ],
)
def test_a_name_that_is_not_declared_is_warned_of(name: str, said: str, path: Path) -> None:
    with pytest.warns(UnknownOptionWarning) as caught:
        create(path, **{name: "1"})
    assert said in {
        str(one.message).removeprefix(f"{PREFIX}{name}")[-len(said) :] for one in caught
    }


def test_what_is_passed_on_is_not_warned_of(path: Path) -> None:
    create(path, **{"engine.speed": "1", "location": f"{path}/.hoodie/toy"})


def test_options_of_a_format_that_declares_none_are_its_own(path: Path) -> None:
    options = {**WRONG, **KEYS, "hoodie.table.format": "toy", "hoodie.table.format.toy.any": "1"}
    hudi.Table.create(path, CITIES, options=options)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (7, "get_options returned a int"),
        (["pace"], "get_options returned a str, not a sequence of FormatOption"),
        ([FormatOption("a b", "", str, "")], "'a b', which is no name"),
        ([FormatOption("a", "", str, "")] * 2, "declares 'a' twice"),
        ([FormatOption("token", "", str, "", is_stored=True)], "as stored, which cannot be"),
    ],
)
def test_what_is_no_declaration(declared: Any, said: str, path: Path) -> None:
    FAULTS["get_options"] = gives(declared)
    with pytest.raises(PluginContractError, match=said):
        create(path, pace="slow")


def test_a_value_that_a_table_holds_and_that_cannot_be_used_is_named(path: Path) -> None:
    made = create(path, pace="fast")
    option = FormatOption("pace", "slow", str, "How fast.", ("gentle",))
    with pytest.raises(InvalidOptionError, match=rf"{PREFIX}pace='fast'.*Supported: gentle"):
        option.read(open_table(made.path, {}).client)
