"""What is changed in one part of a table behind the others, and validators before a commit."""

from __future__ import annotations

import json
import logging
import sys
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction
from pyiceberg.table import StaticTable
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli.app import app
from hudi_core.cli.exit_codes import ExitCode
from hudi_core.config.validators import VALIDATOR_CLASSES, ValidatorKind, ValidatorsConfig
from hudi_core.errors import CommitValidationError, InvalidOptionError
from hudi_core.model.result import ProposedCommit
from hudi_core.plugin.host import FormatHost
from hudi_core.read.dataset import HudiDataset
from hudi_core.services.mending.differences import Source, TableValidation
from tests.formats.service_tables import TWO_STEP, agree, batch, two_writes
from tests.hudi_tables import PLAIN, TRIPS, TXNS

ALL = ("native", *TWO_STEP)


@pytest.fixture(params=ALL)
def validated(request: pytest.FixtureRequest, path: Path) -> hudi.Table:
    return two_writes(path, request.param)


@pytest.fixture(params=TWO_STEP)
def published(request: pytest.FixtureRequest, path: Path) -> hudi.Table:
    return two_writes(path, request.param)


def live(table: hudi.Table) -> list[Path]:
    """The files of the present state, by partition."""
    slices = table.file_slices()
    return [Path(table.path) / one.base_file.path for one in slices if one.base_file is not None]


def said(report: TableValidation, source: Source) -> str:
    assert not report.is_valid
    return "\n".join(map(str, report.of(source)))


def test_a_sound_table_has_no_difference(validated: hudi.Table) -> None:
    report = validated.validate()
    assert report.differences == ()
    assert (report.files, report.rows, report.table_format) == (2, 4, validated.format)
    assert report.checked["instants"] == 2
    assert report.checked["footers"] == 2
    assert report.checked["records of files"] > 2
    if validated.format in TWO_STEP:
        assert report.checked["files of the format"] == 2


def test_writes_that_complete_meanwhile_are_no_difference(validated: hudi.Table) -> None:
    left = [batch(3, "a", "new"), batch(4, "x")]

    def write(*_: int) -> None:
        if left:
            hudi.Table.open(validated.path).upsert(left.pop())

    report = validated.validate(progress=write)
    assert not left
    assert report.differences == ()
    assert (report.files, report.rows) == (2, 4)
    assert validated.validate().differences == ()


@pytest.mark.parametrize("writes", [1, 100])
def test_timeline_and_format_are_those_of_one_moment(
    published: hudi.Table, monkeypatch: pytest.MonkeyPatch, writes: int
) -> None:
    factory = FormatHost.get_metadata_factory
    count = [writes]

    def late(self: FormatHost) -> Any:
        if count[0]:
            count[0], left = 0, count[0] - 1
            hudi.Table.open(published.path).upsert(batch(3, "a", f"new{left}"))
            count[0] = left
        return factory(self)

    monkeypatch.setattr(FormatHost, "get_metadata_factory", late)
    report = published.validate()
    assert report.differences == ()
    assert any("all the time" in why for why in report.skipped.values()) == (writes > 1)


def test_a_table_stays_sound_whatever_is_done_to_it(validated: hudi.Table) -> None:
    validated.delete(batch(3, "x", "y"))  # leaves a file without rows
    assert validated.validate().differences == ()
    validated.insert_overwrite(batch(4, "c"))
    assert validated.validate().differences == ()
    last = validated.upsert(batch(5, "c", "z"))
    validated.rollback(last.instant)
    assert validated.validate().differences == ()
    validated.alter(add_columns={"note": pa.string()})
    validated.delete_partitions(["rome"])
    report = validated.validate()
    assert report.differences == ()
    assert report.orphans == ()


@pytest.mark.parametrize("name", [PLAIN, TXNS, TRIPS])
def test_tables_of_apache_hudi_are_sound(real_tables: Callable[[str], Path], name: str) -> None:
    table = hudi.Table.open(str(real_tables(name)))
    assert table.validate().differences == ()


def test_nothing_is_changed_by_looking(validated: hudi.Table) -> None:
    before = {str(one): one.stat().st_mtime_ns for one in Path(validated.path).rglob("*")}
    validated.validate()
    assert {str(one): one.stat().st_mtime_ns for one in Path(validated.path).rglob("*")} == before


def test_a_file_that_is_gone_is_named(validated: hudi.Table) -> None:
    gone = live(validated)[0]
    gone.unlink()
    report = validated.validate()
    assert gone.name in said(report, Source.STORAGE)
    assert gone.name in said(report, Source.METADATA_TABLE)
    if validated.format in TWO_STEP:
        assert gone.name in said(report, Source.FORMAT)


def test_a_file_of_another_size_is_named(validated: hudi.Table) -> None:
    file = live(validated)[0]
    file.write_bytes(file.read_bytes() + b"x")
    report = validated.validate(footers=False)
    assert file.name in said(report, Source.STORAGE)
    assert report.rows is None
    if validated.format in TWO_STEP:
        assert "bytes" in said(report, Source.FORMAT)


def test_a_file_whose_rows_were_lost_is_named(validated: hudi.Table) -> None:
    file = live(validated)[0]
    pq.write_table(pq.read_table(file).slice(0, 1), file)
    report = validated.validate()
    assert "2 rows, as its commit says" in said(report, Source.STORAGE) or (
        "rows, as its commit says" in said(report, Source.STORAGE)
    )
    if validated.format in TWO_STEP:
        assert "rows" in said(report, Source.FORMAT)


def test_a_damaged_file_is_named(validated: hudi.Table) -> None:
    file = live(validated)[0]
    file.write_bytes(b"PAR1" + b"\0" * (file.stat().st_size - 8) + b"PAR1")
    assert file.name in said(validated.validate(), Source.STORAGE)


@pytest.mark.parametrize("table_format", [*ALL, "iceberg,delta"])
def test_what_another_engine_left_is_listed_and_is_no_difference(
    path: Path, table_format: str
) -> None:
    validated = two_writes(path, table_format)
    left = ["data/00000-1-3f.parquet"]
    for name in table_format.split(","):
        left += {
            "native": [],
            "delta": ["_delta_log/00000000000000000009.json#1"],
            "iceberg": ["metadata/3f-m0.avro", "metadata/snap-1-1-3f.avro"],
        }[name]
    for one in left:
        path = Path(validated.path, one)
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"left")
    report = validated.validate()
    assert report.orphans == tuple(left)
    assert report.is_valid
    shown = CliRunner().invoke(app, ["table", "validate", validated.path])
    assert shown.exit_code == ExitCode.OK
    assert left[0] in shown.output


def test_statistics_of_partitions_are_not_left_over(path: Path) -> None:
    table = two_writes(path, "iceberg")
    table.insert(batch(1, "a"))
    current = StaticTable.from_metadata(table.path)
    metadata = Path(current.metadata_location.removeprefix("file://"))
    found = json.loads(metadata.read_text())
    for kind in ("statistics", "partition-statistics"):
        one: dict[str, Any] = {"statistics-path": f"{metadata.parent.as_uri()}/{kind}.stats"}
        one |= {"snapshot-id": found["current-snapshot-id"], "file-size-in-bytes": 4}
        if kind == "statistics":
            one |= {"file-footer-size-in-bytes": 4, "blob-metadata": []}
        found[kind] = [one]
        (metadata.parent / f"{kind}.stats").write_bytes(b"PFA1")
    metadata.write_text(json.dumps(found))
    assert table.validate().orphans == ()


def test_a_footer_whose_statistics_are_no_text_is_named(native: hudi.Table) -> None:
    path = live(native)[0]
    data = path.read_bytes()
    time = native.timeline.completed_writes()[0].requested_time.encode()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    bounds = data.index(time, footer)  # the bounds of the column of commit times
    path.write_bytes(data[:bounds] + b"\xff" * 8 + data[bounds + 8 :])
    report = hudi.Table.open(native.path).validate()
    assert path.name in said(report, Source.STORAGE)


def test_missing_metadata_of_the_format_is_told(published: hudi.Table) -> None:
    path = Path(published.path)
    folder = path / ("metadata" if published.format == "iceberg" else "_delta_log")
    folder.rename(path.parent / "gone")
    text = said(published.validate(), Source.FORMAT)
    assert "hudi table repair" in text


def test_a_file_that_the_format_names_and_the_table_lacks_is_told(path: Path) -> None:
    table = two_writes(path, "delta")
    source = live(table)[0]
    stranger = path / "stranger.parquet"
    stranger.write_bytes(source.read_bytes())
    log = DeltaTable(table.path)
    add = AddAction("stranger.parquet", stranger.stat().st_size, {"city": "rome"}, 0, True, "{}")
    log.create_write_transaction(
        [add],
        "append",
        log.schema(),
        ["city"],
        commit_properties=CommitProperties(custom_metadata={"hudi.step": "of a test"}),
    )
    text = said(table.validate(), Source.FORMAT)
    assert "stranger.parquet" in text
    assert "none of the table's present files" in text


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"numRecords": 7}, "7 rows"),
        ({"numRecords": 2, "maxValues": {"ts": 1}, "minValues": {"ts": 1}}, "column ts"),
        ({"numRecords": 2, "nullCount": {"ts": 1}}, "1 nulls"),
    ],
)
def test_wrong_statistics_in_a_log_are_told(path: Path, wrong: dict[str, Any], told: str) -> None:
    table = two_writes(path, "delta")
    entry = Path(table.path) / "_delta_log/00000000000000000002.json"
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["stats"] = json.dumps(wrong)
    entry.write_text("\n".join(map(json.dumps, lines)))
    assert told in said(table.validate(), Source.FORMAT)
    assert table.validate(footers=False).is_valid


def test_a_foreign_commit_is_told(path: Path) -> None:
    table = two_writes(path, "delta")
    log = DeltaTable(table.path)
    log.delete("id = 'a'")
    assert "not made by a Hudi writer" in said(table.validate(), Source.FORMAT)


@pytest.mark.parametrize("is_indexed", [True, False])
@pytest.mark.parametrize("group", ["new", "own"])
def test_a_file_that_no_commit_names_is_told(path: Path, group: str, is_indexed: bool) -> None:
    """Of a group of its own, readers without a metadata table would take it for rows."""
    flag = {"hoodie.metadata.enable": str(is_indexed).lower()}
    table = two_writes(path, "native", **flag)
    newest = max(live(table), key=lambda one: one.name.split("_")[2])
    older = next(one for one in newest.parent.iterdir() if one.suffix == ".parquet")
    name = newest.name
    if group == "new":
        name = f"{uuid.UUID(int=7)}-0_{name.partition('_')[2]}"
    else:
        name = name.replace(name.split("_")[1], "7-7-7")
    (newest.parent / name).write_bytes(older.read_bytes())
    told = said(table.validate(footers=False), Source.STORAGE)
    assert name in told
    assert ("not named" in told) == (group == "new")
    (newest.parent / name).unlink()
    assert table.validate().is_valid


def test_a_damaged_metadata_table_is_told(validated: hudi.Table) -> None:
    folder = Path(validated.path) / ".hoodie/metadata/files"
    for one in folder.iterdir():
        if one.suffix == ".hfile" or ".log." in one.name:
            one.write_bytes(b"\0" * 100)
    assert said(validated.validate(), Source.METADATA_TABLE)


def test_a_table_without_a_metadata_table_says_so(path: Path) -> None:
    table = two_writes(path, **{"hoodie.metadata.enable": "false"})
    report = table.validate()
    assert report.is_valid
    assert report.skipped["metadata table"] == "there is none"


def test_the_command_tells_by_its_exit_code(published: hudi.Table) -> None:
    run = CliRunner().invoke
    sound = run(app, ["table", "validate", published.path])
    assert sound.exit_code == 0
    assert "is sound: 2 files, 4 rows" in sound.stdout
    gone = live(published)[0]
    gone.unlink()
    broken = run(app, ["table", "validate", published.path, "--json"])
    assert broken.exit_code == ExitCode.VALIDATION_FAILED
    document = json.loads(broken.stdout)
    assert document["valid"] is False
    assert any(gone.name in one["subject"] for one in document["differences"])
    wide = {"COLUMNS": "1000"}  # paths of tests are longer than the lines of a pipe
    shown = run(app, ["table", "validate", published.path, "--quick"], env=wide)
    assert shown.exit_code == ExitCode.VALIDATION_FAILED
    assert gone.name in shown.stdout
    assert "differences" in shown.stdout


def test_statistics_of_iceberg_are_compared(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = two_writes(path, "iceberg")
    assert len(StaticTable.from_metadata(table.path).inspect.files()) == 2
    monkeypatch.setattr("iceberg_format.stats._lower", lambda kind, value: b"\x09" + b"\0" * 7)
    table.upsert(batch(3, "a"))
    monkeypatch.undo()
    assert "column ts" in said(hudi.Table.open(table.path).validate(), Source.FORMAT)


QUERIES = {
    ValidatorKind.EQUALITY: ValidatorsConfig.equality.key,
    ValidatorKind.INEQUALITY: ValidatorsConfig.inequality.key,
    ValidatorKind.SINGLE_VALUE: ValidatorsConfig.single_value.key,
}
"""Options of the queries, by what their rows have to be."""


def asked(kind: ValidatorKind, *queries: str) -> Mapping[str, str]:
    """Options with queries, as Hudi's users give them."""
    [name] = [name for name, one in VALIDATOR_CLASSES.items() if one is kind]
    return {ValidatorsConfig.kinds.key: name, QUERIES[kind]: ";".join(queries)}


def files(path: Path) -> set[Path]:
    return {one for one in path.rglob("*.parquet") if ".hoodie" not in one.parts}


def test_a_refused_commit_leaves_nothing(table: hudi.Table) -> None:
    path = Path(table.path)
    rows, kept, writes = agree(path), files(path), table.timeline.completed_writes()
    few = asked(ValidatorKind.SINGLE_VALUE, "select max(ts) from <TABLE_NAME>#2")
    with pytest.raises(CommitValidationError, match="it returns 7, not 2") as caught:
        table.upsert(batch(7, "a", "n"), options=few)
    assert caught.value.facts["validator"] == "select max(ts) from <TABLE_NAME>"
    assert not caught.value.retryable
    assert (agree(path), files(path)) == (rows, kept)
    assert table.timeline.completed_writes() == writes
    table.upsert(batch(2, "a", "n"), options=few)
    assert len(table.timeline.completed_writes()) == len(writes) + 1
    assert agree(path) != rows


@pytest.mark.parametrize(
    ("kind", "query", "holds"),
    [
        (ValidatorKind.EQUALITY, "select id from <TABLE_NAME>", False),
        (ValidatorKind.EQUALITY, "select distinct city from <TABLE_NAME> -- both", True),
        (ValidatorKind.EQUALITY, "select city, count(*) from <TABLE_NAME> group by all", False),
        (ValidatorKind.INEQUALITY, "select count(*) from <TABLE_NAME>", True),
        (ValidatorKind.INEQUALITY, "select min(id) from <TABLE_NAME>", False),
        (ValidatorKind.SINGLE_VALUE, "select count(*) from <TABLE_NAME>#5", True),
        (ValidatorKind.SINGLE_VALUE, "select count(*) from <TABLE_NAME> # 5.0 ", True),
        (ValidatorKind.SINGLE_VALUE, "select count(*) from <TABLE_NAME>#4", False),
        (ValidatorKind.SINGLE_VALUE, "select max(city) from <TABLE_NAME>#rome", True),
        (ValidatorKind.SINGLE_VALUE, "select max(ts) > 2 from <TABLE_NAME>#true", True),
        (ValidatorKind.SINGLE_VALUE, "select max(ts) from <TABLE_NAME> where ts > 9#0", False),
        (ValidatorKind.SINGLE_VALUE, "select ts from <TABLE_NAME>#3", False),
        (ValidatorKind.SINGLE_VALUE, "select 1 / (count(*) - 5) from <TABLE_NAME>#1", False),
    ],
)
def test_queries(native: hudi.Table, kind: ValidatorKind, query: str, holds: bool) -> None:
    options, rows = asked(kind, query), batch(3, "c")
    if holds:
        assert native.upsert(rows, options=options).inserted == 1
        return
    with pytest.raises(CommitValidationError):
        native.upsert(rows, options=options)
    assert native.count() == 4


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select count(*) from <TABLE_NAME>, read_text('/etc/hostname')#5", "disabled"),
        ("select count(*) from <TABLE_NAME>, '/etc/hostname'#5", "does not exist"),
    ],
)
def test_queries_see_the_table_alone(native: hudi.Table, query: str, reason: str) -> None:
    with pytest.raises((InvalidOptionError, CommitValidationError), match=reason):
        native.upsert(batch(3, "c"), options=asked(ValidatorKind.SINGLE_VALUE, query))
    assert native.count() == 4


def test_each_of_several_queries_counts(native: hudi.Table) -> None:
    """They are separated by semicolons; an empty one is none."""
    one, two, three = (
        "select count(*) from <TABLE_NAME>#5",
        "select max(ts) from <TABLE_NAME>#3",
        "select min(id) from <TABLE_NAME>#a",
    )
    held = asked(ValidatorKind.SINGLE_VALUE, one, f" {two} ", "", three)
    assert native.upsert(batch(3, "c"), options=held).inserted == 1
    for query, reason in (
        ("select count(*) from <TABLE_NAME>", "it returns 6, not 5"),
        ("select max(ts) from <TABLE_NAME>", "it returns 4, not 3"),
    ):
        with pytest.raises(CommitValidationError, match=reason) as caught:
            native.upsert(batch(4, "d" if "count" in query else "c"), options=held)
        assert caught.value.facts["validator"] == query
    same, other = (ValidatorKind.EQUALITY, ValidatorKind.INEQUALITY)
    with pytest.raises(CommitValidationError, match="not there after it"):
        native.upsert(
            batch(4, "c"),
            options=asked(
                same, "select count(*) from <TABLE_NAME>", "select sum(ts) from <TABLE_NAME>"
            ),
        )
    with pytest.raises(CommitValidationError, match="the same before and after"):
        native.upsert(
            batch(4, "c"),
            options=asked(
                other, "select sum(ts) from <TABLE_NAME>", "select count(*) from <TABLE_NAME>"
            ),
        )
    assert native.count() == 5


def test_every_operation_is_validated(table: hudi.Table) -> None:
    rows = agree(Path(table.path))
    same = {"options": asked(ValidatorKind.EQUALITY, "select count(*), sum(ts) from <TABLE_NAME>")}
    for write, given in (
        (table.insert, batch(3, "c")),
        (table.bulk_insert, batch(3, "c")),
        (table.delete, batch(3, "a")),
        (table.insert_overwrite, batch(3, "c")),
        (table.insert_overwrite_table, batch(3, "c")),
        (table.delete_partitions, ["rome"]),
    ):
        with pytest.raises(CommitValidationError):
            write(given, **same)  # type: ignore[arg-type]
    assert agree(Path(table.path)) == rows
    table.upsert(batch(2, "a").append_column("note", pa.array(["n"])), **same)  # type: ignore[arg-type]
    assert agree(Path(table.path)) == rows


def test_a_function_sees_the_rows_to_come_and_the_commit(table: hudi.Table) -> None:
    seen: list[tuple[list[str], ProposedCommit]] = []

    def look(rows: HudiDataset, commit: ProposedCommit) -> None:
        assert rows.count_rows() == len(rows.to_table())
        seen.append((sorted(rows.to_table(["id"])["id"].to_pylist()), commit))
        assert rows.count_rows(pc.field("note") == "new") == 2
        assert rows.to_table(filter=pc.field("city") == "oslo")["id"].to_pylist().count("x") == 1

    rows = batch(3, "a", "n").append_column("note", pa.array(["new", "new"]))
    table.upsert(rows, validators=[look, lambda rows, commit: True])
    [(ids, commit)] = seen
    assert ids == ["a", "b", "n", "x", "y"] == sorted(table.to_arrow()["id"].to_pylist())
    assert (commit.operation, commit.inserted, commit.updated, commit.files) == ("UPSERT", 1, 1, 2)
    agree(Path(table.path))


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (False, "it returned False"),
        (pa.scalar(False), "it returned False"),
        ([], "neither True, False nor None"),
        (ValueError("fares are odd"), "ValueError: fares are odd"),
    ],
)
def test_a_function_refuses(native: hudi.Table, answer: Any, reason: str) -> None:
    def odd(rows: HudiDataset, commit: ProposedCommit) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(CommitValidationError, match=reason) as caught:
        native.upsert(batch(3, "a"), validators=[odd])
    assert caught.value.facts["validator"] == "odd"
    assert caught.value.__cause__ is (answer if isinstance(answer, Exception) else None)
    assert native.upsert(batch(3, "a"), validators=[lambda rows, commit: None]).updated == 1


def test_it_may_only_warn(native: hudi.Table, caplog: pytest.LogCaptureFixture) -> None:
    options = {
        **asked(ValidatorKind.SINGLE_VALUE, "select count(*) from <TABLE_NAME>#4"),
        ValidatorsConfig.failure_policy.key: "WARN_LOG",
    }
    with caplog.at_level(logging.WARNING):
        native.upsert(batch(3, "c"), options=options)
    assert "it returns 5, not 4" in caplog.text
    assert native.count() == 5


def test_what_others_wrote_meanwhile_is_validated_too(table: hudi.Table) -> None:
    """Each write alone leaves five rows; both together leave six."""
    other, asked_for = hudi.Table.open(table.path), []

    def at_most_five(rows: HudiDataset, commit: ProposedCommit) -> bool:
        asked_for.append(rows.count_rows())
        if len(asked_for) == 1:
            other.bulk_insert(batch(3, "z"), options=together)
        return asked_for[-1] <= 5

    together = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    with pytest.raises(CommitValidationError):
        table.bulk_insert(batch(3, "c"), options=together, validators=[at_most_five])
    assert asked_for == [5, 6]
    assert sum(agree(Path(table.path)).values()) == 5


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({ValidatorsConfig.kinds.key: "com.acme.Check"}, "com.acme.Check is none of"),
        ({ValidatorsConfig.kinds.key: "equality"}, "equality has no query"),
        ({QUERIES[ValidatorKind.EQUALITY]: "from <TABLE_NAME>"}, "no validator runs it"),
        (asked(ValidatorKind.EQUALITY, "select 1"), "does not ask <TABLE_NAME>"),
        (asked(ValidatorKind.SINGLE_VALUE, "from <TABLE_NAME>"), "one # and the value"),
        (asked(ValidatorKind.SINGLE_VALUE, "from <TABLE_NAME>#1#2"), "one # and the value"),
        (asked(ValidatorKind.EQUALITY, "selekt * from <TABLE_NAME>"), "Parser Error"),
        (asked(ValidatorKind.EQUALITY, "select fare from <TABLE_NAME>"), "Binder Error"),
    ],
)
def test_what_cannot_be_validated_is_refused_before_a_file_is_written(
    native: hudi.Table, options: dict[str, str], reason: str
) -> None:
    everything = set(Path(native.path).rglob("*"))
    with pytest.raises(InvalidOptionError, match=reason):
        native.upsert(batch(3, "a"), options=options)
    assert {one for one in Path(native.path).rglob("*") if ".locks" not in one.parts} <= everything


def test_without_duckdb_it_is_named(native: hudi.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    options = asked(ValidatorKind.EQUALITY, "select count(*) from <TABLE_NAME>")
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InvalidOptionError, match=r"pip install hudi-core\[validators\]"):
        native.upsert(batch(3, "a"), options=options)
    native.upsert(batch(3, "a"), validators=[lambda rows, commit: True])


def test_a_new_table_whose_rows_are_refused_is_dropped(tmp_path: Path) -> None:
    path = str(tmp_path / "new")
    options = {
        "hoodie.table.name": "t",
        "hoodie.datasource.write.recordkey.field": "id",
        **asked(ValidatorKind.SINGLE_VALUE, "select count(*) from <TABLE_NAME>#1"),
    }
    with pytest.raises(CommitValidationError):
        hudi.write(batch(1, "a", "b"), path, options=options)
    assert not (Path(path) / ".hoodie/hoodie.properties").exists()
    assert hudi.write(batch(1, "a"), path, options=options) is not None
    with pytest.raises(InvalidOptionError, match="insert_overwrite_table"):
        hudi.write(batch(1, "b"), path, mode="overwrite", options=options)
    assert hudi.Table.open(path).to_arrow()["id"].to_pylist() == ["a"]
