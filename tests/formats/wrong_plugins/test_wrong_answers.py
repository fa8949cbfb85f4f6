"""Formats whose hooks raise, or answer something of another kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import CorruptMetadataError, PluginContractError, PluginHookError
from hudi_core.model.instant_time import InstantTime
from hudi_core.services.opening import open_table
from hudi_core.spi import (
    FileColumns,
    FileIndex,
    FileStatus,
    FormatCommit,
    NamedFile,
    PartitionPath,
    ValueRanges,
)
from tests.formats.two_steps import FAST
from tests.formats.wrong_format import FAULTS, Lister, RicherLister, answer
from tests.formats.wrong_plugins.wrong_tables import (
    ERROR,
    Fault,
    create,
    fails,
    gives,
    reads,
    writes,
)

Act = Callable[[hudi.Table], object]


def reads_some(table: hudi.Table) -> object:
    return hudi.Table.open(table.path).to_arrow(filter=[("ts", ">", 5)])


def finds(table: hudi.Table) -> object:
    return open_table(table.path, FAST).timeline().find(InstantTime("20260101000000000"))


def validates(table: hudi.Table) -> object:
    return hudi.Table.open(table.path, FAST).validate()


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


def test_a_receipt_is_looked_at_whole(tmp_path: Path) -> None:
    FAULTS["create_table"] = gives(FormatCommit("1", Path("/t")))  # type: ignore[arg-type]
    with pytest.raises(PluginContractError, match="receipt of create has the location"):
        create(tmp_path / "t")


# --- what can be done with a lister stays what its format can do ----------------------------------


def test_a_guarded_lister_can_do_what_the_format_can(shared: hudi.Table) -> None:
    def lister(plain: type[Lister]) -> FileIndex:
        FAULTS["create"] = lambda right: plain(right().client)
        return open_table(shared.path, FAST).lister()

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
