"""What a table format declares it can hold, it holds; what it does not declare is refused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudi_core as hudi
from hudi_conformance.formats.checks import check
from hudi_conformance.formats.tables import (
    BY_DAY,
    SCHEMA,
    OverFormat,
    contents,
    create,
    declares,
    files_of,
    ours,
    rows,
    wide,
)
from hudi_conformance.formats.trace import TRACE
from hudi_conformance.formats.under_test import FormatUnderTest, bag
from hudi_core.spi import (
    Capability,
    NotATableError,
    PartitionValueError,
    PluginContractError,
    SchemaError,
    UnsupportedCapabilityError,
)
from hudi_core.spi.testing import load_format


@dataclass(frozen=True)
class Change:
    """A change of columns: how it is called for, and what becomes of the rows."""

    needs: Capability
    arguments: Mapping[str, Any]
    after: Callable[[pa.Table], pa.Table] = lambda rows: rows


CHANGES: Final = (
    Change(Capability.ADD_COLUMN, {"add_columns": {"more": pa.int64()}}),
    Change(
        Capability.RENAME_COLUMN,
        {"rename": {"value": "worth"}},
        lambda rows: rows.rename_columns({"value": "worth"}),
    ),
    Change(Capability.DROP_COLUMN, {"drop": "value"}, lambda rows: rows.drop_columns(["value"])),
    Change(Capability.PROMOTE_TYPE, {"promote": {"count": pa.int64()}}),
)
VALUES: Final[Mapping[str, tuple[pa.DataType, Any]]] = {
    "boolean": (pa.bool_(), True),
    "date": (pa.date32(), dt.date(2024, 2, 29)),
    "time": (pa.time64("us"), dt.time(12, 30, 0, 1)),
    "timestamp": (pa.timestamp("us", "UTC"), dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)),
    "decimal": (pa.decimal128(38, 10), Decimal("1.0000000001")),
    "binary": (pa.binary(), b"\0\xff"),
    "list": (pa.list_(pa.string()), ["a", "b"]),
    "struct": (pa.struct([("x", pa.int32()), ("y", pa.string())]), {"x": 1, "y": "z"}),
}
"""Types that not every format has, each with a value."""
TABLES: Final[Mapping[Capability, str | None]] = {
    Capability.UNPARTITIONED: None,
    Capability.IDENTITY_PARTITIONS: "city",
    Capability.TRANSFORMED_PARTITIONS: BY_DAY,
}


class CapabilityConformance(OverFormat):
    """What a format declares is so, for its tables, their columns, and the changes of both."""

    # --- the plugin ------------------------------------------------------------------------------

    @check("F55", "The format loads, and has every hook that its abilities need.")
    def test_the_hooks_are_there(self, format_under_test: FormatUnderTest) -> None:
        try:
            load_format(format_under_test.name)
        except PluginContractError as error:
            pytest.fail(f"the format breaks the contract when it is loaded: {error}")

    # --- tables ----------------------------------------------------------------------------------

    @pytest.mark.parametrize("capability", TABLES, ids=str)
    @check("F24", "A table that the format does not declare is refused, and nothing is made.")
    def test_undeclared_tables_are_refused(
        self, path: Path, format_under_test: FormatUnderTest, capability: Capability
    ) -> None:
        host = load_format(format_under_test.name)
        if capability in host.capabilities:
            create(path, format_under_test, TABLES[capability]).insert(rows(0, 1))
            assert format_under_test.rows(path) == ours(path) == contents(rows(0, 1))
        else:
            TRACE.refused()
            with pytest.raises(UnsupportedCapabilityError):
                create(path, format_under_test, TABLES[capability])
            assert not files_of(path)

    @check("F39", "A native table becomes one of the format and goes back, or stays as it was.")
    def test_tables_are_converted_or_stay(
        self, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        name, expected = format_under_test.name, contents(rows(0, 1, 2, 3, 4))
        host = load_format(name)
        table = create(path, replace(format_under_test, name="native"))
        table.insert(rows(0, 1, 2, 3, 4))
        if Capability.CONVERSION in host.capabilities:
            table.convert(name, options=format_under_test.options)
            assert table.format == name
            assert format_under_test.rows(path) == ours(path) == expected
            table.upsert(rows(0, ts=2))
            assert format_under_test.rows(path) == contents(rows(0, ts=2), rows(1, 2, 3, 4))
            table.convert("native")
            assert ours(path) == contents(rows(0, ts=2), rows(1, 2, 3, 4))
            # what is left of its metadata is of an earlier state by now
            table.upsert(rows(1, ts=3))
            table.convert(name, options=format_under_test.options)
            assert format_under_test.rows(path) == contents(
                rows(0, ts=2), rows(1, ts=3), rows(2, 3, 4)
            )
            table.convert("native")
        else:
            TRACE.refused()
            before = files_of(path)
            with pytest.raises(UnsupportedCapabilityError):
                table.convert(name, options=format_under_test.options)
            assert files_of(path) == before
            assert ours(path) == expected
        assert hudi.Table.open(str(path)).format == "native"

    @check("F45", "What a table was before it was given the format can still be read.")
    def test_states_of_before_a_conversion(
        self, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        if Capability.CONVERSION not in load_format(format_under_test.name).capabilities:
            TRACE.refused()
            return
        table = create(path, replace(format_under_test, name="native"))
        states = {}
        for ts in (1, 2, 3):
            instant = table.upsert(rows(0, ts, ts=ts)).instant
            states[instant] = ours(path)
        table.convert(format_under_test.name, options=format_under_test.options)
        for instant, state in states.items():
            then = hudi.Table.open(str(path)).to_arrow(as_of=instant)
            assert bag(then.to_pylist()) == state

    @check("F40", "A folder without metadata of the format is no table of it.")
    def test_plain_files_are_no_table(self, path: Path, format_under_test: FormatUnderTest) -> None:
        path.mkdir()
        pq.write_table(rows(0, 1), path / "rows.parquet")
        before = files_of(path)
        with pytest.raises(NotATableError):
            hudi.Table.adopt(str(path), record_key="id", source=format_under_test.name)
        assert files_of(path) == before

    @check("F43", "An empty string as partition value stays one, or is refused before any file.")
    def test_empty_partition_values_are_kept_or_refused(
        self, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        host = load_format(format_under_test.name)
        if Capability.IDENTITY_PARTITIONS not in host.capabilities:
            TRACE.refused()
            return
        table = create(path, format_under_test, "city")
        some = rows(0, 1, 2)
        city = some.schema.get_field_index("city")
        some = some.set_column(city, some.schema.field(city), pa.array(["", "Rome", ""]))
        if Capability.EMPTY_PARTITION_VALUES in host.capabilities:
            table.insert(some)
            assert format_under_test.rows(path) == ours(path) == contents(some)
            assert ours(path) == contents(table.to_arrow(filter=[("city", "in", ["", "Rome"])]))
        else:
            TRACE.refused()
            with pytest.raises(PartitionValueError):
                table.insert(some)
            assert not list(path.rglob("*.parquet"))
            assert format_under_test.rows(path) == ours(path) == contents()

    # --- columns ---------------------------------------------------------------------------------

    @check("F12", "A column that is added is there at once, and holds the values of later rows.")
    def test_a_column_is_added(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest
    ) -> None:
        expected = contents(rows(0, 1, 2, 3, 4))
        if declares(path, Capability.ADD_COLUMN):
            table.alter(add_columns={"more": pa.int64()})
            assert TRACE.hooks() == ["complete_schema_change"]
            assert format_under_test.rows(path) == expected
            table.upsert(wide(0, 6, ts=2))
            expected = contents(rows(1, 2, 3, 4), wide(0, 6, ts=2))
        else:
            TRACE.refused()
            with pytest.raises(UnsupportedCapabilityError):
                table.upsert(wide(0, 6, ts=2))
        assert format_under_test.rows(path) == expected == ours(path)

    @pytest.mark.parametrize("change", CHANGES, ids=lambda one: one.needs)
    @check("F23", "A change of columns calls its hook once, or is refused before any file is made.")
    def test_changes_of_columns_call_their_hook_or_are_refused(
        self, table: hudi.Table, path: Path, format_under_test: FormatUnderTest, change: Change
    ) -> None:
        everything, before = rows(0, 1, 2, 3, 4), files_of(path)
        if declares(path, change.needs):
            table.alter(**change.arguments)
            assert TRACE.hooks() == ["complete_schema_change"]
            assert ours(path) == contents(change.after(everything))
        else:
            TRACE.refused()
            with pytest.raises(UnsupportedCapabilityError):
                table.alter(**change.arguments)
            assert TRACE.hooks() == []
            assert files_of(path) == before
            assert format_under_test.rows(path) == ours(path) == contents(everything)

    @pytest.mark.parametrize("kind", VALUES)
    @check("F41", "A type that the format lacks is refused before there is a file.")
    def test_types_are_held_or_refused(
        self, path: Path, format_under_test: FormatUnderTest, kind: str
    ) -> None:
        column, value = VALUES[kind]
        schema = SCHEMA.append(pa.field("odd", column))
        some = rows(0, 1).append_column("odd", pa.array([value, None], column))
        try:
            table = create(path, format_under_test, schema=schema)
        except SchemaError as error:
            TRACE.refused()
            assert "odd" in str(error)  # noqa: PT017 - either way is right
            assert not files_of(path)
        else:
            table.insert(some)
            assert format_under_test.rows(path) == ours(path) == contents(some)
