"""Tables for tests over any format, what may be done to them, and what is found afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_conformance.formats.checks import CHECKS, Deviation, check_of
from hudi_conformance.formats.trace import TRACE, Call, install
from hudi_conformance.formats.under_test import FormatUnderTest, bag
from hudi_conformance.pytest_plugin import REFUSED
from hudi_core.spi import (
    Action,
    Capability,
    CleanerPlan,
    CleanFileInfo,
    CommitMetadata,
    FormatCommit,
    Instant,
    State,
    UnsupportedCapabilityError,
)
from hudi_core.spi.testing import (
    CommitResult,
    OpenTable,
    WriterDied,
    dies_before,
    next_instant_time,
    open_table,
)

SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("city", pa.string()),
        pa.field("ts", pa.int64()),
        pa.field("value", pa.float64()),
        pa.field("count", pa.int32()),
    ]
)
FAST: Final = {"hoodie.fs.fsync": "false"}
BY_DAY: Final = "ts"
"""A partition column whose values make partitions, of which each has many."""
CITIES: Final = ("rome", "oslo", None)


def rows(*keys: int, ts: int = 1) -> pa.Table:
    """Rows whose key decides their partition, as the index looks only there."""
    return pa.Table.from_pylist(
        [
            {"id": f"k{key}", "city": CITIES[key % 3], "ts": ts, "value": key + 0.5, "count": key}
            for key in keys
        ],
        SCHEMA,
    )


def wide(*keys: int, ts: int = 1) -> pa.Table:
    """Rows with a column that the table does not have at first."""
    return rows(*keys, ts=ts).append_column("more", pa.array([7] * len(keys), pa.int64()))


def _write_and_roll_back(table: hudi.Table) -> Instant:
    instant = table.upsert(rows(0, ts=2)).instant
    TRACE.calls.clear()
    return table.rollback(instant)


WRITES: Final[Mapping[str, Callable[[hudi.Table], CommitResult]]] = {
    "insert": lambda table: table.insert(rows(6)),
    "bulk_insert": lambda table: table.bulk_insert(rows(6)),
    "upsert": lambda table: table.upsert(rows(0, 7, ts=2)),
    "delete": lambda table: table.delete(rows(0)),
    "insert_overwrite": lambda table: table.insert_overwrite(rows(3, ts=2)),
    "delete_partitions": lambda table: table.delete_partitions([{"city": "rome"}]),
    "insert_overwrite_table": lambda table: table.insert_overwrite_table(rows(1, ts=2)),
}
"""Every operation on rows, done to the table that the tests begin with, or one after the other."""
ACTIONS: Final[Mapping[str, Callable[[hudi.Table], Any]]] = {
    **WRITES,
    "rollback": _write_and_roll_back,
    "alter": lambda table: table.alter(add_columns={"more": pa.int64()}),
}
"""Every action whose completion a format learns of."""
NEEDS: Final[Mapping[str, Capability]] = {
    "insert_overwrite": Capability.REPLACE,
    "delete_partitions": Capability.REPLACE,
    "insert_overwrite_table": Capability.REPLACE,
    "alter": Capability.ADD_COLUMN,
}
"""What some of them need a format to declare."""


class OverFormat:
    """What every suite begins with: a table of the format under test, and the calls of hooks."""

    format: ClassVar[FormatUnderTest]
    """The format that a subclass is about."""
    deviations: ClassVar[Mapping[str, Deviation]] = {}
    """What it is known to fail, by the ids of checks."""

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        unknown = sorted(cls.deviations.keys() - CHECKS.keys())
        if unknown:
            raise TypeError(f"{cls.__name__} deviates from checks that there are not: {unknown}")
        for name, member in vars(cls).items():
            above = (vars(base).get(name) for base in cls.__mro__[1:])
            found = next(filter(None, map(check_of, above)), None)
            if found is not None and check_of(member) is not found:
                raise TypeError(
                    f"{cls.__name__}.{name} would replace the check {found}; a check that the "
                    "format fails is named in `deviations`, with the reason"
                )

    @pytest.fixture
    def format_under_test(self) -> FormatUnderTest:
        return type(self).format

    @pytest.fixture(autouse=True)
    def _trace(
        self, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[None]:
        """Install the observer of the suite, and clear what it has seen."""
        # one folder for all tests: where the path changes, all distributions are looked through
        folder = tmp_path_factory.getbasetemp() / "observer"
        if not folder.is_dir():
            install(folder, {})
        clear()
        TRACE.refused = partial(request.node.user_properties.append, (REFUSED, "true"))
        with pytest.MonkeyPatch.context() as patched:
            patched.syspath_prepend(str(folder))
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


def clear() -> None:
    TRACE.calls.clear()
    TRACE.begins = lambda hook, arguments: None
    TRACE.ended = lambda call: None
    TRACE.refused = lambda: None


def create(
    path: Path,
    format_under_test: FormatUnderTest,
    partition_by: str | None = "city",
    schema: pa.Schema = SCHEMA,
    table_type: str | None = None,
    more: Mapping[str, str] | None = None,
) -> hudi.Table:
    options = {**FAST, **format_under_test.options, "hoodie.table.format": format_under_test.name}
    options |= more or {}
    if partition_by == BY_DAY:
        options |= {
            "hoodie.datasource.write.keygenerator.type": "TIMESTAMP",
            "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
            "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
        }
    return hudi.Table.create(
        str(path),
        schema,
        name="conformance",
        record_key="id",
        partition_by=partition_by,
        ordering_field="ts",
        table_type=table_type,
        options=options,
    )


# --- what there is -------------------------------------------------------------------------------


def open_at(path: Path) -> OpenTable:
    return open_table(str(path), FAST)


def declares(path: Path, capability: Capability) -> bool:
    return capability in open_at(path).host.capabilities


def ours(path: Path) -> Counter[str]:
    return bag(hudi.Table.open(str(path)).to_arrow().to_pylist())


def contents(*tables: pa.Table) -> Counter[str]:
    return sum((bag(table.to_pylist()) for table in tables), Counter())


def head(path: Path) -> str:
    """Return the version of the state that the format is in."""
    opened = open_at(path)
    return opened.host.open(opened.client).version


def base_files(table: hudi.Table) -> set[str]:
    """Return the base files of the present state; paths relative to the table."""
    return {str(one.base_file.path) for one in table.file_slices() if one.base_file}


def files_of(path: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def data_files(files: Mapping[str, bytes]) -> set[str]:
    return {name for name in files if name.endswith(".parquet") and "/.hoodie/" not in name}


# --- what is done --------------------------------------------------------------------------------


def can(path: Path, name: str) -> bool:
    """Whether the format declares what an operation of :data:`ACTIONS` needs."""
    return name not in NEEDS or declares(path, NEEDS[name])


def done_or_refused(table: hudi.Table, name: str) -> Any:
    """Do an operation that the format declares; make sure that another one is refused in time.

    Returns
    -------
    CommitResult, Instant, or None
        What the operation returned; ``None`` for one that was refused, before any file was made.
    """
    path = Path(table.path)
    if can(path, name):
        return ACTIONS[name](table)
    before = files_of(path)
    TRACE.refused()
    with pytest.raises(UnsupportedCapabilityError):
        ACTIONS[name](table)
    assert files_of(path) == before
    return None


def replay(path: Path, call: Call) -> FormatCommit:
    """Call a hook again with what it was called with; return the receipt."""
    opened = open_at(path)
    given = {
        name: value
        for name, value in call.arguments.items()
        if name not in ("meta_client", "view_manager")
    }
    receipt: FormatCommit = getattr(opened.host, call.hook)(opened.client, **given)
    return receipt


def same_receipt(one: FormatCommit, other: FormatCommit) -> bool:
    """Whether two receipts are of one state, in one place."""
    return (one.version, one.location) == (other.version, other.location)


def die_before_step_2(write: Callable[[], object]) -> None:
    with dies_before(), pytest.raises(WriterDied):
        write()


def pending(path: Path) -> tuple[OpenTable, Instant, CommitMetadata]:
    """Return the last write of the Hudi timeline, which is pending publication."""
    opened = open_at(path)
    instant = opened.client.timeline().completed_writes()[-1]
    return opened, instant, opened.client.read_commit(instant)


def after_all(path: Path, action: Action, state: State = State.COMPLETED) -> Instant:
    """Return an instant of a service that comes after all there are; it is on no timeline."""
    done = open_at(path).client.timeline().instants
    last = max(one.effective_completion_time for one in done)
    time = next_instant_time(last, last)
    return Instant(time, action, state, time if state is State.COMPLETED else None)


def cleaning(path: Path, *files: str, by_name: bool = False) -> CleanerPlan:
    """Return the plan of a clean that deletes files, given by their paths relative to the table.

    A plan names them by their whole paths, or as earlier ones did, by their names.
    """
    names: dict[str, tuple[str, ...]] = {}
    infos: dict[str, tuple[CleanFileInfo, ...]] = {}
    for one in files:
        folder, _, name = one.rpartition("/")
        names[folder] = (*names.get(folder, ()), name)
        infos[folder] = (*infos.get(folder, ()), CleanFileInfo(f"{path}/{one}", False))
    plan = CleanerPlan(None, "", "KEEP_LATEST_COMMITS")
    if by_name:
        return replace(plan, files_to_be_deleted_per_partition=names)
    return replace(plan, file_paths_to_be_deleted_per_partition=infos)
