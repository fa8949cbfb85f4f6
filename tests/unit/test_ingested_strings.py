"""Strings of files as values of columns: taken unchanged, and inferred where asked for."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.ingestion import IngestionConfig
from hudi_core.errors import InvalidOptionError, SourceFileError
from hudi_core.ingestion.csv_rows import BadStringError, CsvFile, inferred, typed
from hudi_core.ingestion.formats import JsonFile
from hudi_core.ingestion.lines import BadLineError

PRICE = pa.decimal128(9, 2)
TIME = pa.timestamp("us")
UTC = pa.timestamp("us", "UTC")


def strings(*values: str | None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, pa.string())])


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (pa.int32(), "007", 7),
        (pa.int64(), "-0", 0),
        (pa.float64(), "1E5", 1e5),
        (pa.float64(), "9007199254740992", 2.0**53),
        (pa.float64(), "0.1000000000000000055511151231257827", 0.1),
        (pa.float32(), "16777216", 2.0**24),
        (pa.float64(), "-inf", float("-inf")),
        (PRICE, "1.5", 1.5),
        (pa.bool_(), "1", True),
        (pa.date32(), "2026-01-02", "2026-01-02"),
        (pa.time64("us"), "10:20:30.5", "10:20:30.500000"),
        (TIME, "2026-01-02 03:04", "2026-01-02 03:04:00"),
        (UTC, "2026-01-02 03:04", "2026-01-02 03:04:00+00:00"),
        (UTC, "2026-01-02T03:04:00+01:00", "2026-01-02 02:04:00+00:00"),
        (pa.large_string(), "", ""),
        (pa.int64(), "", None),
    ],
)
def test_a_text_is_the_value_that_it_shows(kind: pa.DataType, text: str, value: Any) -> None:
    found = typed(strings(None, text), kind, is_key=False)
    assert found.type == kind
    first, second = found.to_pylist()
    assert first is None
    assert second == value or str(second) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(
            (pa.int64(), text)
            for text in ("x", "1.0", "1e3", "0x1F", "+7", " 7", "1_000", "9" * 19)
        ),
        (pa.int32(), str(1 << 40)),
        *((pa.float64(), text) for text in ("x", "9007199254740993", "1e400", "0x1p3", "1.5 ")),
        (pa.float32(), "16777217"),
        (PRICE, "1.005"),
        (pa.bool_(), "yes"),
        (pa.date32(), "2026-01-02 10:00"),
        (TIME, "2026-01-02 03:04:05.1234567"),
        (TIME, "2026-01-02T03:04:05Z"),
        (pa.time64("us"), "25:00:00"),
    ],
)
@pytest.mark.parametrize("before", [0, 5])
def test_the_first_text_that_is_none_is_named(kind: pa.DataType, text: str, before: int) -> None:
    with pytest.raises(BadStringError) as refused:
        typed(strings(*[None, ""] * before, text, text), kind, is_key=False)
    assert (refused.value.row, refused.value.value) == (2 * before, text)


@pytest.mark.parametrize(
    ("kind", "same", "other"),
    [
        *((pa.int64(), "7", "007"), (pa.int32(), "0", "-0"), (pa.float64(), "1.5", "1.50")),
        *((pa.float64(), "100000", "1E5"), (PRICE, "1.50", "1.5"), (pa.bool_(), "true", "1")),
    ],
)
def test_a_key_is_taken_as_it_is_written(kind: pa.DataType, same: str, other: str) -> None:
    assert typed(strings(same), kind, is_key=True).cast(pa.string()).to_pylist() == [same]
    with pytest.raises(BadStringError, match="in a record key these are two") as refused:
        typed(strings(same, None, other), kind, is_key=True)
    assert (refused.value.row, refused.value.value) == (2, other)


@pytest.mark.parametrize(
    ("values", "kind", "key_kind"),
    [
        (["1", "", None, "-20", "0"], pa.int64(), pa.int64()),
        (["1", "2.5"], pa.float64(), pa.float64()),
        (["1", "2.50", "1E5"], pa.float64(), pa.string()),
        (["7", "007"], pa.string(), pa.string()),
        (["0.5", "00.5"], pa.string(), pa.string()),
        (["1", "10000000000000000001"], pa.string(), pa.string()),
        (["1.5", "9007199254740993"], pa.string(), pa.string()),
        (["0.12345678901234567890", "1"], pa.string(), pa.string()),
        (["true", "FALSE"], pa.bool_(), pa.string()),
        (["2026-01-02", ""], pa.date32(), pa.date32()),
        (["2026-01-02", "2026-01-02 10:00"], TIME, pa.string()),
        (["2026-01-02T10:00:00Z"], UTC, pa.string()),
        (["2026-13-02"], pa.string(), pa.string()),
        (["a", "1"], pa.string(), pa.string()),
        (["", None], pa.null(), pa.null()),
    ],
)
def test_inferred_types(values: list[str | None], kind: pa.DataType, key_kind: pa.DataType) -> None:
    assert inferred(strings(*values), is_key=False).type == kind
    assert inferred(strings(*values), is_key=True).type == key_kind


# --- lines
def csv_file(data: bytes, names: list[str] | None = None, encoding: str = "utf-8") -> CsvFile:
    return CsvFile(data, ",", '"', "", encoding, names)


def test_columns_of_csv_hold_the_texts_of_the_file() -> None:
    data = b'\xef\xbb\xbfcode,"n,m"\r\n007,1E5\r\n\r\n"a\r\nb",\r\n"",1\r\n'
    file = csv_file(data)
    assert file.rows().to_pydict() == {"code": ["007", "a\r\nb", ""], "n,m": ["1E5", None, "1"]}
    assert [file.line_of(row) for row in range(3)] == [2, 4, 6]
    assert csv_file(b"a,b").rows().to_pydict() == {"a": [], "b": []}
    plain = csv_file(b"1,x\n2,y\n", ["a", "b"])
    assert (plain.rows().num_rows, plain.line_of(1)) == (2, 2)
    latin = csv_file("a\n1\né\n".encode("iso8859-1"), encoding="iso8859-1")
    assert latin.rows().to_pydict() == {"a": ["1", "é"]}


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"a,b\n1,2\n\n3,4,5\n", 4, "has 3 values, where there are 2 columns"),
        (b'a,b\n"1\n2",2\n3\n', 4, "has 1 values"),
        (b"a,b\n1,2\n3,caf\xe9\n", 3, "is no UTF-8"),
        (b"a,caf\xe9\n1,2\n", 1, "is no UTF-8"),
        (b"a,b,a\n1,2,3\n", 1, "names the column 'a' twice"),
    ],
)
def test_a_line_that_is_no_csv_is_named(data: bytes, line: int, reason: str) -> None:
    with pytest.raises(BadLineError, match=f"^line {line} {reason}") as refused:
        csv_file(data).rows()
    assert refused.value.line == line


def json_file(data: str | bytes, *known: tuple[str, pa.DataType]) -> JsonFile:
    return JsonFile(data if isinstance(data, bytes) else data.encode(), pa.schema(known))


def test_strings_of_json_are_strings() -> None:
    line = '{"a": "2026-01-02", "s": {"t": "2026-01-02 10:00:00", "n": 1}, "l": ["2026-01-02"]}'
    found = json_file(f"\ufeff{line}\n\n{line}").rows()
    assert found.to_pylist() == [json.loads(line)] * 2
    known = json_file('{"a": "2026-01-02"}', ("a", TIME)).rows()
    assert known.schema.field("a").type == TIME


@pytest.mark.parametrize(
    ("data", "line", "column", "value"),
    [
        ('{"a": 1}\n\n{"a":\n10000000000000000001}', 3, "a", "10000000000000000001"),
        ('{"a": 9007199254740993}\n{"a": 1.5}', 1, "a", "9007199254740993"),
        ('{"a": [{"b": 1.5}, {"b": 9007199254740993}]}', 1, "a", "9007199254740993"),
        ('{"a": 1}\n{"a": "x"}\n{"a": "y"}', 2, "a", "x"),
        ('{"a": {"b": 1}}\n{"a": {"b": "x"}}', 2, "a", "{'b': 'x'}"),
        ('{"n": 1}\n{"n": 7.0}', 2, "n", "7.0"),
        ('{"n": 1}\n{"n": "007"}', 2, "n", "007"),
        ('{"n": 10000000000000000001}', 1, "n", "10000000000000000001"),
        ('{"f": 16777217}', 1, "f", "16777217"),
        ('{"t": "x"}\n{"t": 7}', 2, "t", "7"),
        ('{"d": 1}\n{"d": 1.005}', 2, "d", "1.005"),
    ],
)
def test_values_of_json_that_would_change(data: str, line: int, column: str, value: str) -> None:
    known = [("n", pa.int64()), ("f", pa.float32()), ("t", pa.string()), ("d", PRICE)]
    with pytest.raises(BadLineError, match=f"^line {line} has .* in the column {column}") as found:
        json_file(data, *known).rows()
    assert (found.value.line, found.value.column, found.value.value) == (line, column, value)


def test_floats_of_any_size_are_no_fault_of_json() -> None:
    data = '{"a": 1e300, "b": 0.1}\n{"a": 10000000000000000000, "b": 12345678901234567.0}'
    assert json_file(data).rows().column("a").to_pylist() == [1e300, 1e19]


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b'{"a": 1}\n{"a": \n', 3, "is no JSON"),
        (b'{"a": 1}\n[1]', 2, "holds no object"),
        (b'{"a": 1}\n{"a": 1, "b": {"c": 1, "c": 2}}', 2, "is no JSON: an object has 'c' twice"),
        (b'{"a": "x"}\n{"a": "\xe9"}', 2, "is no UTF-8"),
        (b'{"\xe9": 1}', 1, "is no UTF-8"),
    ],
)
def test_a_line_that_is_no_json_is_named(data: bytes, line: int, reason: str) -> None:
    with pytest.raises(BadLineError, match=f"^line {line} {reason}"):
        json_file(data).rows()


def test_an_encoding_that_is_none_is_refused() -> None:
    key = "hoodie.deltastreamer.csv.encoding"
    assert IngestionConfig.from_options({key: "ISO-8859-1"}).csv_encoding == "iso8859-1"
    with pytest.raises(InvalidOptionError, match="no such encoding"):
        IngestionConfig.from_options({key: "nope"})
    refused = SourceFileError("s", "p", "r", line=3, column="c", value="v")
    assert (refused.line, refused.facts["column"], refused.value) == (3, "c", "v")
