"""Commits of an engine that knows neither the format nor field ids: published, or named."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.table import StaticTable
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

import hudi_core as hudi
from hudi_core.errors import UnpublishedCommitsError
from hudi_core.model.instant import Action
from hudi_core.schema.arrow_types import children, is_list, with_children
from hudi_core.services.mending.differences import Source
from hudi_core.services.opening import open_table
from hudi_core.storage.properties_file import update_properties
from tests import tables
from tests.formats import columns
from tests.formats.delta_tables import row
from tests.formats.foreign_writers import iceberg
from tests.formats.service_tables import agree, bag, batch, by_delta, by_iceberg, two_writes

_MAGIC = b"PAR1"
_REPEATED = 2
# numbers of fields in Parquet's Thrift structures
_SCHEMA, _ROW_GROUPS, _REPETITION, _NAME, _COLUMNS, _META, _PATH = 2, 4, 3, 4, 1, 3, 3
_PLAIN = {
    TType.BOOL: "Bool",
    TType.BYTE: "Byte",
    TType.I16: "I16",
    TType.I32: "I32",
    TType.I64: "I64",
    TType.DOUBLE: "Double",
    TType.STRING: "Binary",
}

Value = tuple[int, Any]
"""A kind of Thrift's, and a value: a list of values for a list, such by number for a structure."""


def required_elements(field: pa.Field) -> pa.Field:
    """A field whose lists hold no nulls."""
    below = [required_elements(one) for _, one in children(field.type)]
    if not below:
        return field
    if is_list(field.type):
        below = [below[0].with_nullable(False)]
    return field.with_type(with_children(field.type, below))


def with_old_lists(file: bytes) -> bytes:
    """A Parquet file with lists of two levels, from one whose lists have required elements."""
    length = int.from_bytes(file[-8:-4], "little")
    read = TCompactProtocol(TMemoryBuffer(file[-8 - length : -8]))
    footer = (TType.STRUCT, _read(read, TType.STRUCT))
    elements = footer[1][_SCHEMA][1]
    kept = []
    for at, (kind, element) in enumerate(elements):
        if element[_NAME][1] == b"list":
            continue
        if at and elements[at - 1][1][_NAME][1] == b"list":
            element[_NAME] = (TType.STRING, b"array")
            element[_REPETITION] = (TType.I32, _REPEATED)
        kept.append((kind, element))
    elements[:] = kept
    for _, group in footer[1][_ROW_GROUPS][1]:
        for _, chunk in group[_COLUMNS][1]:
            path = chunk[_META][1][_PATH][1]
            path[:] = _shorter(path)
    buffer = TMemoryBuffer()
    _write(TCompactProtocol(buffer), footer)
    made: bytes = buffer.getvalue()
    return file[: -8 - length] + made + len(made).to_bytes(4, "little") + _MAGIC


def _shorter(path: list[Value]) -> list[Value]:
    found: list[Value] = []
    for at, one in enumerate(path):
        if one[1] != b"list":
            is_element = at > 0 and path[at - 1][1] == b"list"
            found.append((TType.STRING, b"array") if is_element else one)
    return found


def _read(protocol: Any, kind: int) -> Any:
    if kind == TType.STRUCT:
        fields = {}
        protocol.readStructBegin()
        while True:
            _, of, number = protocol.readFieldBegin()
            if of == TType.STOP:
                break
            fields[number] = (of, _read(protocol, of))
            protocol.readFieldEnd()
        protocol.readStructEnd()
        return fields
    if kind == TType.LIST:
        of, size = protocol.readListBegin()
        found = [(of, _read(protocol, of)) for _ in range(size)]
        protocol.readListEnd()
        return found
    return getattr(protocol, f"read{_PLAIN[kind]}")()


def _write(protocol: Any, value: Value) -> None:
    kind, content = value
    if kind == TType.STRUCT:
        protocol.writeStructBegin("")
        for number, one in content.items():
            protocol.writeFieldBegin("", one[0], number)
            _write(protocol, one)
            protocol.writeFieldEnd()
        protocol.writeFieldStop()
        protocol.writeStructEnd()
    elif kind == TType.LIST:
        of = content[0][0] if content else TType.BYTE
        protocol.writeListBegin(of, len(content))
        for one in content:
            _write(protocol, one)
        protocol.writeListEnd()
    else:
        getattr(protocol, f"write{_PLAIN[kind]}")(content)


NO_SERVICES = {"hoodie.clean.automatic": "false", "hoodie.archive.automatic": "false"}


def _without_ids(field: pa.Field) -> pa.Field:
    below = children(field.type)
    kind = with_children(field.type, [_without_ids(one) for _, one in below]) if below else None
    return pa.field(field.name, kind or field.type, field.nullable)


class _Writer(pq.ParquetWriter):  # type: ignore[misc]
    """Writes columns without field ids."""

    def __init__(self, where: Any, schema: pa.Schema, **given: Any) -> None:
        self._columns = pa.schema([_without_ids(field) for field in schema])
        super().__init__(where, self._columns, **given)

    def write_table(self, table: pa.Table, **given: Any) -> None:
        super().write_table(table.cast(self._columns), **given)


class _AvroWriter(_Writer):
    """Writes lists of two levels, as writers by way of Avro do by default."""

    def __init__(self, where: Any, schema: pa.Schema, **given: Any) -> None:
        self._to, self._file = where, pa.BufferOutputStream()
        super().__init__(self._file, pa.schema(map(required_elements, schema)), **given)

    def close(self) -> None:
        is_open = self.is_open
        super().close()
        if is_open:
            self._to.write(with_old_lists(self._file.getvalue().to_pybytes()))


@contextmanager
def other_engine(path: Path, *, by_avro: bool = False) -> Iterator[hudi.Table]:
    """The table as an engine has it that does not know its format.

    ``by_avro``: whether lists have two levels in its files.
    """
    storage, name = open_table(str(path), {}).client.storage, hudi.Table.open(path).format
    update_properties(storage, {"hoodie.table.format": "native"})
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(pq, "ParquetWriter", _AvroWriter if by_avro else _Writer)
        try:
            yield hudi.Table.open(path)
        finally:
            update_properties(storage, {"hoodie.table.format": name})


NAMES = "schema.name-mapping.default"
PUBLISHED = ("iceberg", "delta", "iceberg,delta")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t"


def typed_rows(*keys: int, ts: int = 0) -> pa.Table:
    return pa.Table.from_pylist([row(key, ts, key / 4) for key in keys], columns.TYPED)


@pytest.mark.parametrize("table_format", PUBLISHED)
def test_its_files_are_read_right_once_they_are_published(path: Path, table_format: str) -> None:
    """Columns of every kind, found by their names where the file has no field ids."""
    table = tables.new_table(path, typed_rows(*range(8)), format=table_format)
    with other_engine(path) as theirs:
        theirs.upsert(typed_rows(1, 20, ts=5))
    table.upsert(typed_rows(3, ts=6))
    held = bag(hudi.Table.open(path).to_arrow())
    for read in (by_iceberg, by_delta):
        if read.__name__.removeprefix("by_") in table_format:
            assert bag(read(path)) == held
    found = hudi.Table.open(path).to_arrow(filter=[("id", "=", row(1, 5)["id"])])
    assert found["ts"].to_pylist() == [5]
    assert hudi.Table.open(path).validate().is_valid


@pytest.mark.parametrize("cure", ["repair", "write"])
def test_tables_with_such_files_are_named_and_healed(path: Path, cure: str) -> None:
    """As releases before published them: their Iceberg tables have no name mapping."""
    table = two_writes(path, "iceberg")
    with other_engine(path) as theirs:
        theirs.upsert(batch(5, "a"))
    table.upsert(batch(6, "x"))
    with iceberg(path).transaction() as transaction:
        transaction.remove_properties(NAMES)
    with pytest.raises(ValueError, match="field-ids"):
        by_iceberg(path)
    differences = table.validate().of(Source.FORMAT)
    assert [one.subject.partition("/")[0] for one in differences] == ["file rome"]
    assert NAMES in str(differences[0])
    assert not table.validate(footers=False).differences
    if cure == "repair":
        assert table.repair().left == ()
    else:
        table.upsert(batch(7, "y"))
    assert hudi.Table.open(path).validate().is_valid
    assert len(agree(path)) == 4


def test_names_of_former_and_new_columns(path: Path) -> None:
    """A file without ids knows the names of its day, and a name may be another column's later."""
    table = two_writes(path, "iceberg")
    with other_engine(path) as theirs:
        theirs.upsert(batch(5, "a"))
    table.alter(rename={"value": "amount"})
    table = hudi.Table.open(path)
    table.alter(add_columns={"value": pa.string()})
    found = {one["id"]: one for one in by_iceberg(path).to_pylist()}
    assert (found["a"]["amount"], found["a"]["value"]) == (5.0, None)
    new = batch(7, "x").rename_columns(["id", "city", "ts", "amount", "tags"])
    with other_engine(path) as theirs:
        theirs.upsert(new.append_column("value", pa.array(["seven"])))
    hudi.Table.open(path).delete(batch(8, "b").select(["id", "city"]))
    found = {one["id"]: one for one in by_iceberg(path).to_pylist()}
    assert (found["x"]["amount"], found["x"]["value"]) == (7.0, "seven")
    assert hudi.Table.open(path).validate().is_valid


@pytest.mark.parametrize("table_format", PUBLISHED)
def test_reads_say_once_that_the_timeline_is_ahead(
    path: Path, table_format: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = two_writes(path, table_format)
    held = bag(table.to_arrow())
    with other_engine(path) as theirs:
        theirs.upsert(batch(5, "a"))
        last = theirs.upsert(batch(6, "x")).instant.requested_time
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert bag(hudi.Table.open(path).to_arrow()) == held
    (said,) = [one.getMessage() for one in caplog.records if "does not know" in one.getMessage()]
    assert f"completed 2 commits on the Hudi timeline, the last of them {last}" in said
    assert f"hudi table repair {path}" in said
    assert hudi.Table.open(path).repair().left == ()
    assert hudi.Table.open(path).to_arrow(filter=[("id", "=", "x")])["ts"].to_pylist() == [6]


@pytest.mark.parametrize("service", ["clean", "archive"])
@pytest.mark.parametrize("table_format", PUBLISHED)
def test_cleaned_files_of_that_state_are_named(path: Path, table_format: str, service: str) -> None:
    """Never fewer rows, and never an error about a file alone."""
    two_writes(path, table_format)
    few = {
        "hoodie.clean.commits.retained": "1",
        "hoodie.keep.min.commits": "2",
        "hoodie.keep.max.commits": "3",
    }
    with other_engine(path):
        for ts in range(5, 11):
            hudi.Table.open(path).upsert(batch(ts, "a", "x"), options=NO_SERVICES)
        hudi.Table.open(path).clean(options=few)
        if service == "archive":
            hudi.Table.open(path, few).archive()
    table = hudi.Table.open(path)
    before = set(path.rglob("*.parquet"))
    for call in (table.to_arrow, table.count, lambda: table.upsert(batch(20, "b"))):
        with pytest.raises(UnpublishedCommitsError, match=f"hudi table repair {path}"):
            call()
    assert set(path.rglob("*.parquet")) == before
    assert any("cleaned files" in str(one) for one in table.validate().differences)
    assert table.repair().left == ()
    table = hudi.Table.open(path)
    held = {one["id"]: one["ts"] for one in table.to_arrow(columns=["id", "ts"]).to_pylist()}
    assert held == {"a": 10, "b": 1, "x": 10, "y": 2}
    table.upsert(batch(20, "b"))
    for read in (by_iceberg, by_delta):
        if read.__name__.removeprefix("by_") in table_format:
            assert bag(read(path)) == bag(hudi.Table.open(path).to_arrow())


def test_a_file_group_that_came_and_went_is_named(path: Path) -> None:
    """The published state is whole; a commit in between cannot be published any more."""
    table = two_writes(path, "delta")
    with other_engine(path):
        for ts in (5, 6, 7):
            paris = batch(ts, "n").set_column(1, "city", pa.array(["paris"]))
            hudi.Table.open(path).upsert(paris, options=NO_SERVICES)
        hudi.Table.open(path).clean(options={"hoodie.clean.commits.retained": "1"})
    assert hudi.Table.open(path).count() == 4
    assert not all(one.is_pending for one in table.validate().differences)
    with pytest.raises(UnpublishedCommitsError, match="paris/"):
        table.upsert(batch(20, "b"))
    assert table.repair().left == ()
    assert hudi.Table.open(path).count() == 5
    agree(path)


def test_every_commit_keeps_the_names(path: Path) -> None:
    table = two_writes(path, "iceberg")
    table.alter(add_columns={"note": pa.string()})
    names = StaticTable.from_metadata(str(path)).properties[NAMES]
    assert '"note"' in names
    assert '"element"' in names


@pytest.mark.parametrize("table_format", PUBLISHED)
def test_lists_of_two_levels_are_named_and_rewritten(
    path: Path, table_format: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Readers of Iceberg in Java fail on them; all others read them as they are."""
    table = two_writes(path, table_format)
    table.delete(where="id = 'b'")  # its NaN, without which footers are as they are written
    with other_engine(path, by_avro=True) as theirs:
        theirs.upsert(batch(5, "a"))
    with caplog.at_level(logging.WARNING):
        table.upsert(batch(6, "x"))
    held = agree(path)
    said = [one.getMessage() for one in caplog.records if "two levels" in one.getMessage()]
    found = table.validate()
    planned, left = table.repair(dry_run=True).rewritten, table.repair().left
    assert left == ()
    if "iceberg" not in table_format:
        assert not said
        assert found.is_valid
        assert planned == ()
        return
    assert len(said) == 1
    assert "the columns tags" in said[0]
    assert f"hudi table repair {path}" in said[0]
    (difference,) = found.of(Source.DATA_FILE)
    assert difference.found == "of two levels in tags"
    assert f"file {planned[0]}" in difference.subject
    assert len(found.differences) == len(planned) == 1
    table = hudi.Table.open(path)
    assert table.validate().is_valid
    assert table.repair().is_needed is False
    assert agree(path) == held
    last = table.timeline.completed_writes()[-1]
    assert last.action is Action.REPLACECOMMIT


def test_a_conversion_names_lists_of_two_levels(
    path: Path, native: hudi.Table, caplog: pytest.LogCaptureFixture
) -> None:
    native.delete(where="id = 'b'")  # its NaN, without which footers are as they are written
    with other_engine(path, by_avro=True) as theirs:
        theirs.upsert(batch(5, "a", "x"))
    assert native.validate().is_valid
    with caplog.at_level(logging.WARNING):
        hudi.Table.open(path).convert("iceberg")
    assert "2 data files of" in caplog.text
    native = hudi.Table.open(path)
    assert len(native.repair().rewritten) == 2
    assert native.validate().is_valid
    agree(path)


def test_files_with_buckets_stay(path: Path) -> None:
    """A clustering would put their rows into other file groups."""
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    rows = batch(1, "a", "b")
    table = tables.new_table(path, rows, options, format="iceberg", partition_by=None)
    with other_engine(path, by_avro=True) as theirs:
        theirs.upsert(batch(5, "a"))
    table.upsert(batch(6, "b"))
    assert not table.repair(dry_run=True).rewritten
    (left,) = table.repair().left
    assert left.source is Source.DATA_FILE
    table.upsert(batch(7, "a"))
    assert table.validate().is_valid
