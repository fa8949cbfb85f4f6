"""Changes of tables: by comparing files, or from the logs that writes leave."""

from __future__ import annotations

import io
import json
import pickle
import random
import time as clock
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.avro.datum import encode_datum
from hudi_core.errors import (
    CommitConflictError,
    CorruptMetadataError,
    DataFileError,
    HistoryExpiredError,
    InvalidOptionError,
    SchemaError,
    UnsafePathError,
)
from hudi_core.log_format.block import (
    BlockType,
    HeaderKey,
    decode_avro_content,
    encode_avro_content,
    encode_log_block,
    read_log_blocks,
)
from hudi_core.model.commit import WriteStat
from hudi_core.model.files import FileGroupId
from hudi_core.read.changes import incremental
from hudi_core.read.changes.feed import ChangeLogs
from hudi_core.read.changes.file_changes import ChangeSource
from hudi_core.read.changes.window import WindowWrite
from hudi_core.read.json_text import json_rows
from tests.cli_runs import run
from tests.tables import copied, new_table

MODES = ("DATA_BEFORE", "DATA_BEFORE_AFTER")
UNCLEANED = {"hoodie.clean.automatic": "false"}
FEW = {"hoodie.clean.commits.retained": "1"}
TYPED_COLUMNS = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("b", pa.bool_()),
        ("i", pa.int32()),
        ("f", pa.float32()),
        ("x", pa.float64()),
        ("text", pa.string()),
        ("raw", pa.binary()),
        ("p", pa.decimal128(10, 2)),
        ("wide", pa.decimal128(38, 6)),
        ("d", pa.date32()),
        ("t", pa.time64("us")),
        ("z", pa.timestamp("us", "UTC")),
        ("at", pa.timestamp("us")),
        ("l", pa.list_(pa.decimal128(5, 1))),
        ("s", pa.struct([("a", pa.int32()), ("at", pa.timestamp("us"))])),
        ("m", pa.map_(pa.string(), pa.list_(pa.struct([("at", pa.timestamp("us"))])))),
    ]
)


AT = datetime(1850, 7, 2, 3, 4, 5, 6)  # noqa: DTZ001 - a time without a zone


def values(draw: random.Random, number: int) -> dict[str, Any]:
    """A row of all types, with nulls here and there."""
    at = AT + timedelta(microseconds=draw.randrange(10**16))
    row = {
        "b": draw.random() < 0.5,
        "i": draw.randrange(-(2**31), 2**31),
        "f": draw.choice([0.1, -0.0, float("nan"), float("inf")]),
        "x": draw.choice([1e20, draw.random(), float("-inf")]),
        "text": draw.choice(["", 'é"\\\n/', "\U0001f600"]),
        "raw": draw.randbytes(draw.randrange(4)),
        "p": Decimal(draw.randrange(-(10**9), 10**9)).scaleb(-2),
        "wide": Decimal(draw.randrange(-(10**37), 10**37)).scaleb(-6),
        "d": date(1, 1, 2) if draw.random() < 0.2 else at.date(),
        "t": time(1, 2, 3, draw.randrange(10**6)),
        "z": at.replace(tzinfo=UTC),
        "at": at,
        "l": [Decimal(draw.randrange(-9999, 9999)).scaleb(-1), None][: draw.randrange(3)],
        "s": {"a": draw.choice([None, 5]), "at": draw.choice([None, at])},
        "m": [("k", [{"at": at}, None]), ("j", None)][: draw.randrange(3)],
    }
    present = {name: value for name, value in row.items() if draw.random() < 0.8}
    return {"id": number, "city": "rome" if number % 3 else "oslo", **present}


def drawn_rows(draw: random.Random, ids: Any) -> pa.Table:
    return pa.Table.from_pylist([values(draw, number) for number in ids], TYPED_COLUMNS)


def assert_same(found: list[pa.Table], wanted: list[pa.Table]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.schema == other.schema
        # NaN is not equal to itself
        assert str(one.to_pylist()) == str(other.to_pylist())


def create(path: Path, mode: str, schema: pa.Schema = TYPED_COLUMNS, **more: Any) -> hudi.Table:
    options = {
        **UNCLEANED,
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
        **more.pop("options", {}),
    }
    found = hudi.Table.create(
        path, schema, record_key="id", partition_by="city", options=options, **more
    )
    return hudi.Table.open(found.path, options=UNCLEANED)


def simple(*ids: int, value: str = "a") -> pa.Table:
    return pa.table({"id": list(ids), "city": ["rome"] * len(ids), "value": [value] * len(ids)})


def two_writes(path: Path, mode: str = "DATA_BEFORE_AFTER", **more: Any) -> tuple[hudi.Table, Any]:
    """A table whose second write changes rows of the first, which is returned."""
    table = create(path, mode, simple(0).schema, **more)
    first = table.insert(simple(1, 2, 3))
    table.upsert(simple(2, 4, value="b"))
    return table, first.instant


def expire(table: hudi.Table) -> None:
    """Have the files of all but the last two writes cleaned."""
    table.clean(options=FEW)


def sources(table: hudi.Table, begin: Any = None, end: Any = None) -> set[ChangeSource]:
    parts = table._session.changes(begin, end, None, None).feed("json").parts
    return {change.source for part in parts for change in part.changes}


@pytest.fixture
def compares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs are read only where files are gone, unless a test says otherwise."""
    monkeypatch.setattr(incremental, "SMALL_LOG", 10**12)


of_logs = pytest.mark.usefixtures("compares")


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine that is not in UTC."""
    monkeypatch.setenv("TZ", "America/New_York")
    clock.tzset()
    yield
    monkeypatch.undo()
    clock.tzset()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.usefixtures("zone")
@of_logs
def test_a_history_of_all_types(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(7)
    table = create(tmp_path / "t", mode)
    table.insert(drawn_rows(draw, range(40)))
    begin = table.timeline.completed_writes()[-1]
    ends = []
    for step in range(4):
        some = draw.sample(range(60), 15)
        write = table.delete if step == 2 else table.upsert
        ends.append(write(drawn_rows(draw, some)).instant)
    table.upsert(drawn_rows(draw, [1, 3]))
    asked: list[dict[str, Any]] = [
        {},
        {"images": "struct"},
        {"columns": ["m", "id"], "filter": [("i", ">", 0)]},
        {"images": "struct", "columns": "s", "filter": [("city", "=", "oslo"), ("text", "!=", "")]},
    ]

    def answers() -> list[pa.Table]:
        window = begin, ends[-1]
        return [table.changes(*window, **one) for one in asked] + [
            table.changes_batches(*window).read_all().combine_chunks()
        ]

    compared = answers()
    assert sources(table, begin, ends[-1]) == {ChangeSource.FILES}
    assert set(compared[0]["op"].to_pylist()) == {"d", "u", "i"}
    monkeypatch.setattr(incremental, "SMALL_LOG", 0)
    preferred = ChangeSource.LOGS_OR_FILES if mode == MODES[1] else ChangeSource.FILES
    assert sources(table, begin, ends[-1]) == {preferred}
    assert_same(answers(), compared)

    expire(table)
    with pytest.raises(HistoryExpiredError):  # the logs of files that were cleaned are, too
        answers()
    begin = ends[-2]
    monkeypatch.setattr(incremental, "SMALL_LOG", 10**12)
    wanted = ChangeSource.LOGS if mode == MODES[1] else ChangeSource.LOGS_AND_AFTER
    assert sources(table, begin, ends[-1]) == {wanted}
    times = [
        one.filter(pa.compute.equal(one["ts_ms"], ends[-1].requested_time)) for one in compared
    ]
    assert_same(answers(), times)


@pytest.mark.parametrize("mode", MODES)
@of_logs
def test_columns_that_changed_after_the_log(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema(
        [
            ("id", pa.int64()),
            ("city", pa.string()),
            ("old", pa.string()),
            ("i", pa.int32()),
            ("n", pa.int64()),
            ("f", pa.float32()),
            ("gone", pa.int32()),
            ("s", pa.struct([("a", pa.int32()), ("b", pa.string())])),
            ("l", pa.list_(pa.struct([("a", pa.int32())]))),
        ]
    )

    def given(number: int, value: int) -> dict[str, Any]:
        below = {"a": value, "b": "x"}
        some = {
            "old": f"{value}",
            "i": value,
            "n": value,
            "f": 0.1,
            "gone": 7,
            "s": below,
            "l": [below],
        }
        return {"id": number, "city": "rome", **some}

    table = create(tmp_path / "t", mode, schema)
    first = table.insert(pa.Table.from_pylist([given(n, n) for n in range(3)], schema)).instant
    second = table.upsert(pa.Table.from_pylist([given(1, 8), given(9, 9)], schema)).instant
    table = hudi.Table.open(
        table.path, options={**UNCLEANED, "hoodie.write.schema.widen.numbers": "true"}
    )
    table.alter(
        rename={"old": "new", "s.b": "c"},
        drop="gone",
        promote={"i": pa.int64(), "n": pa.float64(), "f": pa.string(), "s.a": pa.float64()},
    )
    table.alter(add_columns={"gone": pa.string(), "old": pa.int32()})
    last = pa.table({"id": [0], "city": ["rome"], "new": ["y"]})
    missing = {"hoodie.write.set.null.for.missing.columns": "true"}
    after = table.upsert(last, options=missing).instant
    window = first, second
    wanted: list[dict[str, Any]] = [
        {},
        {"images": "struct"},
        {"columns": ["i", "gone"]},
        {"columns": ["gone", "old"]},  # none of which the log has
        {"columns": []},
        {"filter": [("n", ">", 1.5)]},
    ]
    compared = [table.changes(*window, **one) for one in wanted]
    monkeypatch.setattr(incremental, "SMALL_LOG", 0)
    assert [table.changes(*window, **one) for one in wanted] == compared  # types are others now
    expire(table)
    assert ChangeSource.FILES not in sources(table, *window)
    assert [table.changes(*window, **one) for one in wanted] == compared
    assert compared[1]["before"].to_pylist()[-1]["s"] == {"a": 1.0, "c": "x"}
    assert table.changes(second, after).num_rows == 1


def rewritten(
    table: hudi.Table, monkeypatch: pytest.MonkeyPatch, change: Callable[[WriteStat], WriteStat]
) -> None:
    """Have commits say something else of their files with logs."""
    written = WindowWrite.written

    def other(self: WindowWrite) -> Iterator[tuple[FileGroupId, WriteStat]]:
        for group, stat in written(self):
            yield group, change(stat) if stat.cdc_stats else stat

    monkeypatch.setattr(WindowWrite, "written", other)


def as_hudi_writes(table: hudi.Table, stat: WriteStat) -> WriteStat:
    """The log of a write as Hudi writes it: several files and blocks, with meta columns."""
    [path] = stat.cdc_stats or {}
    [block] = read_log_blocks(Path(table.path, path).read_bytes(), path)
    tree = json.loads(block.header[HeaderKey.SCHEMA].replace('"field-id"', '"other"'))
    plain = fastavro.parse_schema(json.loads(block.header[HeaderKey.SCHEMA]))
    row = next(f["type"][1] for f in tree["fields"] if f["name"] == "before")
    text = {"type": ["null", "string"], "default": None}
    row["fields"].insert(0, {"name": "_hoodie_commit_time", **text})
    parsed = fastavro.parse_schema(tree)
    assert isinstance(plain, dict)
    assert isinstance(parsed, dict)
    sizes = {}
    for number, datum in enumerate(decode_avro_content(block.content, path)):
        record = fastavro.schemaless_reader(pa.BufferReader(datum), plain, None)
        assert isinstance(record, dict)
        for image in ("before", "after"):
            if record.get(image):
                record[image]["_hoodie_commit_time"] = "0"
        content = encode_avro_content([encode_datum(record, parsed)])
        header = {HeaderKey.INSTANT_TIME: block.header[HeaderKey.INSTANT_TIME]}
        header[HeaderKey.SCHEMA] = json.dumps(tree)
        data = encode_log_block(BlockType.CDC, header, content)
        # ten files and more are in the order of their numbers, not of their names
        name = path.replace(".log.1_", f".log.{9 + number // 2}_")
        with Path(table.path, name).open("ab") as log:
            log.write(data)
        sizes[name] = Path(table.path, name).stat().st_size
    return replace(stat, cdc_stats=dict(sorted(sizes.items())))


@pytest.mark.parametrize("mode", MODES)
@of_logs
def test_logs_of_hudi(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path / "t", mode, simple(0).schema)
    first = table.insert(simple(*range(9))).instant
    gone = pa.table({**dict(zip(("id", "city"), simple(5, 6).columns[:2], strict=True))})
    changed = simple(7, 1, 20, 21, 3, value="b").append_column(
        "_hoodie_is_deleted", pa.array([False] * 5)
    )
    dropped = gone.append_column("value", pa.nulls(2, pa.string())).append_column(
        "_hoodie_is_deleted", pa.array([True] * 2)
    )
    second = table.upsert(pa.concat_tables([changed, dropped])).instant
    compared = table.changes(first, second)
    assert compared["op"].to_pylist() == ["d", "d", "i", "i", "u", "u", "u"]
    table.upsert(simple(0))
    expire(table)
    assert table.changes(first, second).equals(compared)
    stats = {}

    def change(stat: WriteStat) -> WriteStat:
        if stat.path not in stats:
            stats[stat.path] = as_hudi_writes(table, stat)
        return stats[stat.path]

    rewritten(table, monkeypatch, change)
    assert table.changes(first, second).equals(compared)
    [part] = table._session.changes(first, second, None, None).feed("json").parts
    assert len(part.changes[0].logs) == 4
    texts = table.changes(first, second, columns="value", filter=[("id", "=", 20)])
    assert texts["after"].to_pylist() == ['{"value":"b"}']


@pytest.mark.parametrize("mode", MODES)
@of_logs
def test_rows_with_the_same_key(tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = create(tmp_path / "t", mode, simple(0).schema)
    first = table.insert(pa.concat_tables([simple(1, 2), simple(1, value="again"), simple(3)]))
    second = table.upsert(simple(3, 1, value="b")).instant
    compared = table.changes(first.instant, second, images="struct")
    told = [(row["before"]["value"], row["after"]["id"]) for row in compared.to_pylist()]
    assert sorted(told) == [("a", 1), ("a", 3), ("again", 1)]
    monkeypatch.setattr(incremental, "SMALL_LOG", 0)
    assert table.changes(first.instant, second, images="struct").equals(compared)
    table.upsert(simple(2))
    expire(table)
    assert ChangeSource.FILES not in sources(table, first.instant, second)
    assert table.changes(first.instant, second, images="struct").equals(compared)


@of_logs
def test_an_operation_that_is_no_text(expired: tuple[hudi.Table, Any]) -> None:
    table, first = expired
    part = part_of(table, first)
    path = Path(table.path, part.logs[0].path)
    [block] = read_log_blocks(path.read_bytes(), str(path))
    schema = json.loads(block.header[HeaderKey.SCHEMA])
    schema["fields"][0] = {"name": "op", "type": {"type": "array", "items": "string"}}
    parsed = fastavro.parse_schema(schema)
    assert isinstance(parsed, dict)
    record = {"op": ["i"], "before": None, "after": None}
    content = encode_avro_content([encode_datum(record, parsed)])
    [time] = part.times
    header = {HeaderKey.INSTANT_TIME: time, HeaderKey.SCHEMA: json.dumps(schema)}
    path.write_bytes(encode_log_block(BlockType.CDC, header, content))
    log = replace(part.logs[0], size=path.stat().st_size)
    logs = ChangeLogs(table._session.opened.client.files, pa.schema([("id", pa.int64())]))
    with pytest.raises(CorruptMetadataError, match="lacks rows of its operation"):
        list(logs.read([log], time).images())


@of_logs
def test_what_logs_do_not_tell(tmp_path: Path) -> None:
    table, first = two_writes(tmp_path / "keys", "OP_KEY_ONLY")
    second = table.timeline.completed_writes()[-1]
    table.upsert(simple(2))
    expire(table)
    with pytest.raises(HistoryExpiredError):
        table.changes(first, second)
    table, first = two_writes(tmp_path / "meta")
    second = table.timeline.completed_writes()[-1]
    table.upsert(simple(2))
    expire(table)
    assert table.changes(first, second)["op"].to_pylist() == ["i", "u"]
    with pytest.raises(HistoryExpiredError):
        table.changes(first, second, columns=["id", "_hoodie_commit_time"])
    with pytest.raises(HistoryExpiredError):
        table.changes(first, second, filter=[("_hoodie_record_key", "=", "2")])
    with pytest.raises(HistoryExpiredError):
        table.incremental(first, second, deletes=True)
    Path(table.path, *part_of(table, first).logs[0].path.split("/")).unlink()
    with pytest.raises(HistoryExpiredError, match="begin later"):
        table.changes(first, second)


def part_of(table: hudi.Table, begin: Any) -> Any:
    return table._session.changes(begin, None, None, None).feed("json").parts[0].changes[0]


@pytest.fixture
def expired(tmp_path: Path) -> tuple[hudi.Table, Any]:
    """A table with a change that a log alone tells, and the write before that."""
    table, first = two_writes(tmp_path / "t")
    table.upsert(simple(1), options={"hoodie.table.cdc.enabled": "true"})
    expire(table)
    return table, first


@of_logs
def test_damaged_logs(expired: tuple[hudi.Table, Any], tmp_path: Path) -> None:
    table, first = expired
    part = part_of(table, first)
    assert part.source is ChangeSource.LOGS
    [log], path = part.logs, Path(table.path, part.logs[0].path)
    whole = path.read_bytes()
    columns = pa.schema([("id", pa.int64()), ("value", pa.string())])
    logs, [instant] = ChangeLogs(table._session.opened.client.files, columns), part.times
    found = {name: (before, after) for name, before, after in logs.read([log], instant).images()}
    assert found["d"][0] is not None
    assert found["d"][0].schema == columns
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        with pytest.raises(CorruptMetadataError):
            table.changes(first)
    for place in range(0, len(whole), 3):
        data = bytearray(whole)
        data[place] ^= 0xFF
        path.write_bytes(data)
        try:
            rows = list(logs.read([log], instant).images())
        except CorruptMetadataError:
            continue
        assert len(rows) == 3  # some bytes are values, and no checksum is there
    # whole blocks, and one is missing
    path.write_bytes(whole + whole)
    with pytest.raises(CorruptMetadataError, match="its commit says"):
        table.changes(first)
    path.write_bytes(whole)
    with pytest.raises(CorruptMetadataError, match="holds no changes of 2026"):
        logs.read([log], first.requested_time)
    other = tmp_path / "other"
    path.rename(other)
    path.symlink_to(other)
    with pytest.raises(UnsafePathError):
        table.changes(first)


@pytest.mark.parametrize(
    ("given", "becomes"),
    [
        ("rome/.", "rome/../rome/."),
        ("rome/.", "oslo/."),
        (".cdc", ""),
        (".log.1", ".log.01"),
        ("rome/.", "rome/.x"),
        ("_20", "_19"),
    ],
)
@of_logs
def test_paths_that_are_no_logs(
    expired: tuple[hudi.Table, Any], monkeypatch: pytest.MonkeyPatch, given: str, becomes: str
) -> None:
    table, first = expired

    def change(stat: WriteStat) -> WriteStat:
        named = {
            path.replace(given, becomes): size for path, size in (stat.cdc_stats or {}).items()
        }
        return replace(stat, cdc_stats=named)

    rewritten(table, monkeypatch, change)
    with pytest.raises(CorruptMetadataError, match="no log of changes of file group"):
        table.changes(first)


@of_logs
def test_small_logs_are_read_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    table = create(tmp_path / "t", MODES[1], simple(0).schema)
    many = pa.table({"value": [f"{number * 7919}" for number in range(20_000)]})
    many = many.append_column("id", pa.array(range(20_000))).append_column(
        "city", pa.repeat("rome", 20_000)
    )
    first = table.insert(many).instant
    for value in "bc":
        table.upsert(simple(2, 60_000, value=value))
    compared = [("u", 2), ("i", 60_000), ("u", 2), ("u", 60_000)]
    assert sources(table, first) == {ChangeSource.LOGS_OR_FILES}
    assert sources(table) == {ChangeSource.FILES, ChangeSource.LOGS_OR_FILES}

    def told() -> list[tuple[str, int]]:
        rows = table.changes_batches(first, images="struct").read_all().to_pylist()
        return [(row["op"], row["after"]["id"]) for row in rows]

    assert told() == compared
    monkeypatch.setattr(incremental, "SMALL_LOG", 10**5)
    assert sources(table, first) == {ChangeSource.FILES}
    monkeypatch.setattr(incremental, "SMALL_LOG", 0)
    for log in Path(table.path).rglob(".*.cdc"):
        log.write_bytes(log.read_bytes()[:-1])
    assert told() == compared
    for log in Path(table.path).rglob(".*.cdc"):
        log.unlink()
    assert told() == compared
    assert sources(table, first) == {ChangeSource.LOGS_OR_FILES}


@pytest.mark.parametrize("format_name", ["native", "iceberg", "delta"])
@pytest.mark.parametrize("mode", MODES)
@of_logs
def test_formats_and_layouts(tmp_path: Path, format_name: str, mode: str) -> None:
    placed = {
        "hoodie.storage.strategy.class": "object_store",
        "hoodie.storage.path": str(tmp_path / "store"),
    }
    options = {} if format_name == "delta" and mode == MODES[0] else placed
    table, first = two_writes(tmp_path / "t", mode, format=format_name, options=options)
    second = table.timeline.completed_writes()[-1]
    table.upsert(simple(1))
    compared = table.changes(first, second)
    expire(table)
    plan = table._session.changes(first, second, None, [("value", "!=", "z")]).feed("json")
    read = {change.source for part in plan.parts for change in part.changes}
    assert ChangeSource.FILES not in read
    assert table.changes(first, second).equals(compared)
    again = pickle.loads(pickle.dumps(plan))  # as tasks get it
    assert again.to_arrow().read_all().sort_by("op").to_pylist() == compared.to_pylist()
    assert all(part.size > 0 for part in plan.parts)
    window = {
        "hoodie.datasource.query.type": "incremental",
        "hoodie.datasource.query.incremental.format": "cdc",
        "hoodie.datasource.read.begin.instanttime": first.completion_time,
        "hoodie.datasource.read.end.instanttime": second.completion_time,
    }
    assert hudi.read(None, f"{table.path}/rome", window).sort_by("op").equals(compared)


@of_logs
def test_files_that_a_commit_does_not_name(
    expired: tuple[hudi.Table, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    table, first = expired
    second = table.timeline.completed_writes()[1]
    told = table.changes(first, second)
    rewritten(table, monkeypatch, lambda stat: replace(stat, prev_base_file=None))
    assert table.changes(first, second).equals(told)
    was = table.changes(first, second, filter=[("value", "=", "a")], columns="id")
    assert was["op"].to_pylist() == ["u"]
    with pytest.raises(HistoryExpiredError):
        table.incremental(first, second, deletes=True)


# --- changes of real tables: forms of the images, options, filters
FEED = {
    "hoodie.datasource.query.type": "incremental",
    "hoodie.datasource.query.incremental.format": "cdc",
    "hoodie.datasource.read.begin.instanttime": "earliest",
}


def in_rome(*ids: int, value: str = "a") -> pa.Table:
    return pa.table({"id": list(ids), "city": ["rome"] * len(ids), "value": [value] * len(ids)})


@pytest.fixture
def table(tmp_path: Path) -> hudi.Table:
    return copied(tmp_path / "t", changed_rows)


def changed_rows(path: Path) -> hudi.Table:
    made = hudi.Table.create(path, in_rome(1), record_key="id", partition_by="city")
    made.insert(in_rome(1, 2))
    made.upsert(in_rome(2, 3, value="b"))
    made.delete(in_rome(1))
    return made


def test_json_of_every_type() -> None:
    given = pa.table(
        {
            "i": pa.array([1, None], pa.int32()),
            'na"me': pa.array(['q"\\\n\x01é\U0001f600', None]),
            "empty": pa.array(["", None], pa.large_string()),
            "x": pa.array([1e20, None], pa.float64()),
            "f": pa.array([1.1, 2.0], pa.float32()),
            "n": pa.array([float("nan"), float("-inf")]),
            "b": pa.array([True, None]),
            "d": pa.array([date(2026, 1, 2), None]),
            "t": pa.array([datetime(2026, 1, 2, 3, 4, 5, 6, UTC), None], pa.timestamp("us", "UTC")),
            "l": pa.array([-86400000, None], pa.int64()).cast(pa.timestamp("ms")),
            "u": pa.array([time(1, 2, 3), None], pa.time32("ms")),
            "p": pa.array([Decimal("12.30"), None], pa.decimal128(10, 2)),
            "r": pa.array([b"\x01\xffab", None]),
            "list": pa.array([[[1], None, []], None], pa.list_(pa.list_(pa.int8()))),
            "s": pa.array([{"a": None, "z": ["x"]}, None]),
            "m": pa.array([[("k", 1), ("j", None)], None], pa.map_(pa.string(), pa.int64())),
            "w": pa.array([[(date(1970, 1, 2), "x")], []], pa.map_(pa.date32(), pa.string())),
            "c": pa.array(["x", None]).dictionary_encode(),
        }
    )
    first, second = (json.loads(text) for text in json_rows(given).to_pylist())
    assert first == {
        "i": 1,
        'na"me': 'q"\\\n\x01é\U0001f600',
        "empty": "",
        "x": 1e20,
        "f": 1.1,
        "n": "NaN",
        "b": True,
        "d": 20455,
        "t": 1767323045000006,
        "l": -86400000000,
        "u": 3723000000,
        "p": 12.3,
        "r": "Af9hYg==",
        "list": [[1], None, []],
        "s": {"a": None, "z": ["x"]},
        "m": {"k": 1, "j": None},
        "w": {"1": "x"},
        "c": "x",
    }
    present = {name: value for name, value in second.items() if value is not None}
    assert present == {"f": 2.0, "n": "-Infinity", "w": {}}
    assert '"f":2.0,' in json_rows(given)[1].as_py()
    assert json_rows(given.slice(1, 1)).to_pylist() == json_rows(given).to_pylist()[1:]
    assert json_rows(pa.table({"x": []})).to_pylist() == []


def test_images_are_texts_or_structs(table: hudi.Table) -> None:
    _, second, third = table.timeline.completed_writes()
    texts = table.changes(second).to_pylist()
    [structs] = table.changes(second, images="struct", columns="id").to_pylist()
    before = '{"id":1,"city":"rome","value":"a"}'
    deleted = {"op": "d", "ts_ms": third.requested_time}
    assert texts == [{**deleted, "before": before, "after": None}]
    assert structs == {**deleted, "before": {"id": 1}, "after": None}
    with pytest.raises(InvalidOptionError, match="images"):
        table.changes(images="xml")  # type: ignore[arg-type]


def test_no_columns_at_all(table: hudi.Table) -> None:
    told = [
        (row["op"], row["before"], row["after"])
        for row in table.changes(columns=[], images="struct").to_pylist()
    ]
    assert told == [
        ("i", None, {}),
        ("i", None, {}),
        ("i", None, {}),
        ("u", {}, {}),
        ("d", {}, None),
    ]
    texts = table.changes_batches(columns=[], filter=[("value", "=", "b")]).read_all()
    assert [(row["op"], row["before"], row["after"]) for row in texts.to_pylist()] == [
        ("u", "{}", "{}"),
        ("i", None, "{}"),
    ]
    # what is left of rows is their number
    first, *_ = table.timeline.completed_writes()
    assert table.to_arrow(columns=[]).num_rows == table.count() == 2
    assert table.to_arrow(columns=[], filter=[("id", "=", 3)]).num_rows == 1
    assert table.incremental(first, columns=[]).num_rows == 2
    net = table.incremental(first, columns=[], deletes=True)
    assert sorted(net["_change_type"].to_pylist()) == ["delete", "insert", "update"]


def test_the_feed_by_hudis_options(table: hudi.Table) -> None:
    found = hudi.read(None, table.path, FEED)
    assert found.equals(table.changes_batches().read_all())
    assert found.column_names == ["op", "ts_ms", "before", "after"]
    assert sorted(found["op"].to_pylist()) == ["d", "i", "i", "i", "u"]
    end = table.timeline.completed_writes()[0].completion_time
    until = {**FEED, "hoodie.datasource.read.end.instanttime": end}
    assert hudi.read(None, table.path, until)["op"].to_pylist() == ["i", "i"]
    assert hudi.read(None, f"{table.path}/rome", FEED).num_rows == 5


def test_a_filter_of_changes(table: hudi.Table) -> None:
    first, *_ = table.timeline.completed_writes()
    was_or_is = table.changes(first, filter=[("value", "=", "a")], columns="id", images="struct")
    assert [(row["op"], row["before"]["id"]) for row in was_or_is.to_pylist()] == [
        ("u", 2),
        ("d", 1),
    ]
    shown = table.incremental(first, deletes=True, filter=[("value", "=", "a")], columns="id")
    assert shown.to_pylist() == [{"id": 1, "_change_type": "delete"}]
    assert table.changes(first, filter=[("city", "=", "oslo")]).num_rows == 0


def test_a_column_of_the_name_is_refused(tmp_path: Path) -> None:
    given = pa.table({"id": [1], "_change_type": ["x"]})
    table = new_table(tmp_path / "t", given)
    with pytest.raises(SchemaError, match="has a column _change_type"):
        table.incremental(deletes=True)
    assert table.incremental().num_rows == 1
    assert table.changes().num_rows == 1


@pytest.mark.parametrize("format_name", ["native", "iceberg", "delta"])
def test_files_that_a_filter_excludes_are_not_read(tmp_path: Path, format_name: str) -> None:
    options = {
        "hoodie.copyonwrite.insert.auto.split": "false",
        "hoodie.copyonwrite.insert.split.size": "2",
        "hoodie.parquet.small.file.limit": "0",
    }
    given = pa.table({"id": [1, 2, 3, 4]})
    table = new_table(tmp_path / "t", given.schema, options, format=format_name)
    first = table.bulk_insert(given.slice(0, 2))
    table.bulk_insert(given.slice(2))
    [other] = {status.stat.path for status in first.statuses}
    few: list[Any] = [("id", ">", 2)]
    Path(table.path, str(other)).unlink()

    assert table.incremental(filter=few, columns="id")["id"].to_pylist() == [3, 4]
    assert table.changes(filter=few).num_rows == 2
    with pytest.raises(DataFileError):
        table.incremental()


# --- logs of changes: what is in them, and that whoever deals with files knows them
WRITTEN_SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("city", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("tags", pa.map_(pa.string(), pa.list_(pa.int32()))),
    ]
)
MOMENT = datetime(2026, 1, 2, 3, 4, 5, 6, UTC)


def tagged(*ids: int, tag: int = 1) -> pa.Table:
    found = [{"id": one, "city": "rome", "at": MOMENT, "tags": [("a", [tag, None])]} for one in ids]
    return pa.Table.from_pylist(found, WRITTEN_SCHEMA)


def image(number: int, tag: int = 1) -> dict[str, Any]:
    return {"id": number, "city": "rome", "at": MOMENT, "tags": {"a": [tag, None]}}


def logged(path: Path, mode: str = "data_before_after", **more: Any) -> hudi.Table:
    options = {
        "hoodie.table.cdc.enabled": "true",
        "hoodie.table.cdc.supplemental.logging.mode": mode,
    }
    return new_table(path, tagged(1, 2, 3), options, **more)


def logs(table: hudi.Table) -> list[Path]:
    return sorted(Path(table.path).rglob(".*.cdc"))


def records(table: hudi.Table, result: hudi.CommitResult) -> list[dict[str, Any]]:
    """What the log of a commit with one file holds."""
    [stat] = result.metadata.stats
    [(name, size)] = (stat.cdc_stats or {}).items()
    data = Path(table.path, name).read_bytes()
    assert len(data) == size
    [block] = read_log_blocks(data, name)
    assert block.type == BlockType.CDC
    assert block.header[HeaderKey.INSTANT_TIME] == result.instant.requested_time
    schema = fastavro.parse_schema(json.loads(block.header[HeaderKey.SCHEMA]))
    content = io.BytesIO(block.content)
    _, count = (int.from_bytes(content.read(4)) for _ in range(2))
    found = []
    for _ in range(count):
        record = fastavro.schemaless_reader(
            io.BytesIO(content.read(int.from_bytes(content.read(4)))), schema, None
        )
        assert isinstance(record, dict)
        found.append(record)
    assert not content.read()
    return sorted(found, key=lambda one: str(one["op"]))


def test_the_rows_before_and_after(tmp_path: Path) -> None:
    table = logged(tmp_path / "t")
    assert logs(table) == []  # all rows of a new file are new
    upsert = table.upsert(tagged(2, 4, tag=7))
    time = upsert.instant.requested_time
    assert records(table, upsert) == [
        {"op": "i", "ts_ms": time, "before": None, "after": image(4, 7)},
        {"op": "u", "ts_ms": time, "before": image(2), "after": image(2, 7)},
    ]
    delete = table.delete(tagged(1))
    [record] = records(table, delete)
    assert (record["op"], record["before"], record["after"]) == ("d", image(1), None)
    assert sorted(table.changes()["op"].to_pylist()) == ["d", "i", "i", "i", "i", "u"]


def test_less_of_each_change(tmp_path: Path) -> None:
    table = logged(tmp_path / "before", "DATA_BEFORE")
    assert records(table, table.upsert(tagged(2, 4, tag=7))) == [
        {"op": "i", "record_key": "4", "before": None},
        {"op": "u", "record_key": "2", "before": image(2)},
    ]
    table = logged(tmp_path / "keys", "OP_KEY_ONLY")
    assert records(table, table.insert(tagged(5))) == [{"op": "i", "record_key": "5"}]
    assert "hoodie.table.cdc.supplemental.logging.mode=OP_KEY_ONLY" in Path(
        table.path, ".hoodie/hoodie.properties"
    ).read_text(encoding="utf-8")
    with pytest.raises(InvalidOptionError, match="Supported: OP_KEY_ONLY, DATA_BEFORE"):
        logged(tmp_path / "other", "everything")


@pytest.mark.parametrize("format_name", ["native", "iceberg", "delta"])
def test_logs_are_files_of_their_instant(tmp_path: Path, format_name: str) -> None:
    table = logged(tmp_path / "t", format=format_name)
    table.upsert(tagged(2, tag=7))
    [kept] = logs(table)
    table.delete(tagged(1))
    assert len(logs(table)) == 2
    assert table.validate().is_valid
    assert table.count() == table.to_arrow().num_rows == 2
    named = table._session.opened.lister().named_files() or ()
    assert not [file.path for file in named if file.path.endswith(".cdc")]
    table.rollback(table.timeline.completed_writes()[-1])
    assert logs(table) == [kept]
    assert table.validate().is_valid
    if format_name == "native":
        for method in ("delete", "create"):
            assert run("metadata", method, table.path).exit_code == 0
        table = hudi.Table.open(table.path)
        assert table.validate().is_valid
    listed = {row["file_name"] for row in table.metadata("files").to_pylist()}
    assert kept.name in listed


def test_logs_are_cleaned_with_their_files(tmp_path: Path) -> None:
    table = logged(tmp_path / "t")
    few = {"hoodie.clean.commits.retained": "1"}
    for tag in range(3):
        table.upsert(tagged(2, tag=tag), options=few)
    *_, third, last = table.timeline.completed_writes()
    assert [third.requested_time in one.name for one in logs(table)] == [True, False]
    assert table.validate().is_valid
    assert table.changes(third)["op"].to_pylist() == ["u"]
    with pytest.raises(HistoryExpiredError, match="begin later"):
        table.changes(None, last)
    assert table.incremental(deletes=True).num_rows == 3  # of what is there now

    table.insert_overwrite(tagged(9), options={"hoodie.clean.automatic": "false"})
    replacing = table.timeline.completed_writes()[-1]
    assert table.changes(last)["op"].to_pylist() == ["d", "d", "d", "i"]
    table.upsert(tagged(9), options={"hoodie.clean.automatic": "false"})
    table.clean(options=few)
    assert table.changes(replacing)["op"].to_pylist() == ["u"]


def test_a_write_that_loses_leaves_no_log(tmp_path: Path) -> None:
    table = logged(tmp_path / "t")
    several = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    other = hudi.Table.open(table.path)

    def late() -> Iterator[pa.RecordBatch]:
        other.upsert(tagged(2, tag=5), options=several)
        yield from tagged(2, tag=6).to_batches()

    with pytest.raises(CommitConflictError):
        table.upsert(pa.RecordBatchReader.from_batches(WRITTEN_SCHEMA, late()), options=several)
    [winner] = logs(table)
    assert other.timeline.completed_writes()[-1].requested_time in winner.name
    assert table.validate().is_valid
