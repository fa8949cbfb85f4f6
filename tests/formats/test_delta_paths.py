"""Paths of a Delta log: one spelling, which all engines read, remove and vacuum by."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, QueryBuilder, write_deltalake
from deltalake.transaction import AddAction

import hudi_core as hudi
from delta_format.paths import plain, spelled
from hudi_core.errors import UnsupportedTableError
from hudi_core.services.differences import Source
from tests.formats.delta_steps import actions_of, version
from tests.formats.two_steps import FAST
from tests.readers import by_duckdb
from tests.unit.refusals import files

SCHEMA = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])
PLAIN: list[str | None] = [
    "São",
    "a b",
    "50%",
    "x/a:b",
    "*y",
    "z[1]#?",
    "é\u0301\U0001f600",
    "n\u00a0b",
    "{q}'|",
]
ENCODED: list[str | None] = ["São Paulo/x", "50%", "a:b", "*y", None]
TABLES: Mapping[str, tuple[list[str | None], str, str]] = {
    "plain": (PLAIN, "false", "false"),
    "encoded": (ENCODED, "true", "true"),
}


def rows(cities: Sequence[str | None], n: int, keys: Iterable[int] = (0,)) -> pa.Table:
    given = [{"id": f"{city}-{key}", "city": city, "n": n} for city in cities for key in keys]
    return pa.Table.from_pylist(given, SCHEMA)


def new_table(path: Path, hive: str = "false", encode: str = "false") -> hudi.Table:
    options = {
        **FAST,
        "hoodie.datasource.write.hive_style_partitioning": hive,
        "hoodie.datasource.write.partitionpath.urlencode": encode,
    }
    return hudi.Table.create(
        str(path), SCHEMA, record_key="id", partition_by="city", format="delta", options=options
    )


def read_by_all(path: Path) -> dict[str, int]:
    """The rows, which all readers find."""
    ours = hudi.Table.open(str(path)).to_arrow(columns=SCHEMA.names).to_pylist()
    by_query = QueryBuilder().register("t", DeltaTable(str(path))).execute("select * from t")
    found = {
        "deltalake": DeltaTable(str(path)).to_pyarrow_table(columns=SCHEMA.names).to_pylist(),
        "datafusion": pa.table(by_query.read_all()).select(SCHEMA.names).to_pylist(),
        "polars": pl.scan_delta(str(path)).select(SCHEMA.names).collect().to_dicts(),
        "duckdb": by_duckdb.read_delta(path),
    }
    wanted = sorted((row["id"], row["city"], row["n"]) for row in ours)
    for name, seen in found.items():
        assert sorted((row["id"], row["city"], row["n"]) for row in seen) == wanted, name
    assert len({row["id"] for row in ours}) == len(ours)
    return {row["id"]: row["n"] for row in ours}


def named(path: Path) -> dict[str, str]:
    """What the newest version names: files, and how their paths are spelled."""
    spellings = pa.table(DeltaTable(str(path)).get_add_actions()).column("path").to_pylist()
    return {plain(one): one for one in spellings}


def parquet_files(path: Path) -> set[str]:
    found = {str(one.relative_to(path)) for one in path.rglob("*.parquet")}
    return {one for one in found if not one.startswith("_delta_log/")}


def vacuum(path: Path, **given: Any) -> list[str]:
    return DeltaTable(str(path)).vacuum(
        retention_hours=0, enforce_retention_duration=False, dry_run=False, **given
    )


def findings(path: Path) -> list[tuple[str, str | None]]:
    found = hudi.Table.open(str(path)).validate()
    return [(one.source, one.found) for one in found.differences]


# --- the spelling ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a/b=c/f-0_1-2_3.parquet", "a/b=c/f-0_1-2_3.parquet"),
        ("São/é\u0301/\U0001f600/ß", "São/é\u0301/\U0001f600/ß"),
        ("São%2FPaulo", "São%252FPaulo"),
        ("a b", "a%20b"),
        ("50%", "50%25"),
        ("c:d/e:f", "c%3Ad/e:f"),
        ("-_.~!$&'()*+,;=:@", "-_.~!$&'()*+,;=%3A@"),
        ("x/-_.~!$&'()*+,;=:@", "x/-_.~!$&'()*+,;=:@"),
        ('"#<>?[\\]^`{|}', "%22%23%3C%3E%3F%5B%5C%5D%5E%60%7B%7C%7D"),
        ("\x01\x7f\n", "%01%7F%0A"),
        ("\x85\u00a0\u2003\u2028\u2029", "%C2%85%C2%A0%E2%80%83%E2%80%A8%E2%80%A9"),
        ("\u200b\ufeff\u0378", "\u200b\ufeff\u0378"),
    ],
)
def test_a_path_is_spelled_as_in_a_path_of_hadoop(path: str, text: str) -> None:
    assert spelled(path) == text
    assert plain(text) == path


@pytest.mark.parametrize("kind", TABLES)
def test_every_engine_resolves_what_the_log_names(tmp_path: Path, kind: str) -> None:
    cities, hive, encode = TABLES[kind]
    table = new_table(tmp_path, hive, encode)
    table.insert(rows(cities, 1, (0, 1)))
    table.upsert(rows(cities, 2))
    table.delete(rows(cities[:1], 0, (1,)))
    table.insert_overwrite(rows(cities[1:2], 3))
    held = {f"{city}-{key}": 2 - key for city in cities for key in (0, 1)}
    del held[f"{cities[0]}-1"], held[f"{cities[1]}-1"]
    held[f"{cities[1]}-0"] = 3
    assert read_by_all(tmp_path) == held

    present = named(tmp_path)
    assert {text: spelled(path) for path, text in present.items()} == {
        text: text for text in present.values()
    }
    removed = [
        action["remove"]["path"]
        for number in range(version(tmp_path) + 1)
        for action in actions_of(tmp_path, number)
        if "remove" in action
    ]
    assert len(removed) == len(cities) + 2
    assert removed == [spelled(plain(text)) for text in removed]
    # what is gone is gone, and nothing else
    assert set(vacuum(tmp_path)) == {plain(text) for text in removed}
    assert parquet_files(tmp_path) == present.keys()
    assert read_by_all(tmp_path) == held


def test_a_checkpoint_keeps_the_spelling(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    for n in range(10):
        table.upsert(rows(PLAIN, n))
    [checkpoint] = (tmp_path / "_delta_log").glob("*.checkpoint.parquet")
    stored = pq.read_table(checkpoint, columns=["add", "remove"])
    paths = [
        one["path"] for column in stored.columns for one in column.to_pylist() if one is not None
    ]
    assert len(paths) == 9 * len(PLAIN)
    assert paths == [spelled(plain(path)) for path in paths]
    for old in (tmp_path / "_delta_log").glob("0*.json"):
        if int(old.stem) < 9:
            old.unlink()
    assert set(read_by_all(tmp_path).values()) == {9}
    table.upsert(rows(PLAIN, 10))
    assert set(read_by_all(tmp_path).values()) == {10}
    assert findings(tmp_path) == []


def test_an_undone_write_leaves_the_spelling_of_before(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.insert(rows(PLAIN, 1))
    before = named(tmp_path)
    done = table.upsert(rows(PLAIN, 2))
    table.rollback(done.instant)
    assert named(tmp_path) == before
    assert set(read_by_all(tmp_path).values()) == {1}


# --- logs of earlier releases, and of other engines -----------------------------------------------


def by_an_earlier_release(path: Path) -> None:
    """Spell the log as deltalake does, by which earlier releases wrote it."""
    for file in (path / "_delta_log").glob("*.json"):
        lines = []
        for action in map(json.loads, file.read_text(encoding="utf-8").splitlines()):
            for kind in {"add", "remove"} & action.keys():
                text = quote(plain(action[kind]["path"]), safe="/-_.~!$&'()+,;=:@")
                action[kind]["path"] = text
            lines.append(json.dumps(action, ensure_ascii=False))
        file.write_text("\n".join(lines), encoding="utf-8")


@pytest.fixture(scope="module")
def earlier(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("earlier") / "table"
    cities, hive, encode = TABLES["encoded"]
    table = new_table(path, hive, encode)
    table.insert(rows([*cities, "Rome"], 1, (0, 1)))
    table.upsert(rows(cities[:1], 2))
    by_an_earlier_release(path)
    return path


@pytest.fixture
def old(earlier: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(earlier, tmp_path / "table"))


def test_a_log_of_an_earlier_release_is_written_on_and_repaired(old: Path) -> None:
    table = hudi.Table.open(str(old))
    table.upsert(rows([*ENCODED, "Rome"], 3, (0,)))
    table.delete(rows(["São Paulo/x"], 0, (1,)))
    held = read_by_all(old)
    wanted = {f"{city}-{key}": 3 - 2 * key for city in [*ENCODED, "Rome"] for key in (0, 1)}
    del wanted["São Paulo/x-1"]
    assert held == wanted
    # each file was replaced, and none is spelled as it was
    assert findings(old) == []


def test_misspelled_files_are_named_and_repaired(old: Path) -> None:
    held = read_by_all(old)
    [odd] = (text for path, text in named(old).items() if text != spelled(path))
    assert findings(old) == [(Source.FORMAT, f"named as {odd}")]

    repaired = hudi.Table.open(str(old)).repair()
    assert repaired.left == ()
    assert findings(old) == []
    assert read_by_all(old) == held
    # neither a present file nor the record of a removed one is misspelled
    assert not any("%C3" in file.read_text() for file in (old / "_delta_log").glob("*.json"))
    present = named(old).keys()
    assert not present & set(vacuum(old, full=True))
    assert read_by_all(old) == held
    hudi.Table.open(str(old)).upsert(rows(ENCODED, 4))
    assert read_by_all(old) == held | {f"{city}-0": 4 for city in ENCODED}


def test_a_clean_log_goes_on_through_a_repair(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.insert(rows(PLAIN, 1))
    before = version(tmp_path)
    compacted_by_spark(tmp_path, "São")
    repaired = hudi.Table.open(str(tmp_path)).repair(discard=True)
    assert repaired.left == ()
    assert version(tmp_path) == before + 2


def compacted_by_spark(path: Path, city: str) -> None:
    """Leave the version of an OPTIMIZE of Delta of Spark: one file for those of a partition."""
    number = version(path) + 1
    old = {file: text for file, text in named(path).items() if file.startswith(f"{city}/")}
    name = f"{city}/part-00000-6c9c0a2e-c000.snappy.parquet"
    found = pa.concat_tables([pq.read_table(path / file, partitioning=None) for file in old])
    pq.write_table(found, path / name)
    values = {"city": city}
    removes = [
        {"remove": {"path": text, "deletionTimestamp": 1, "dataChange": False}}
        for text in old.values()
    ]
    add = {
        "path": spelled(name),
        "partitionValues": values,
        "size": (path / name).stat().st_size,
        "modificationTime": 1,
        "dataChange": False,
    }
    info = {"timestamp": 1, "operation": "OPTIMIZE", "engineInfo": "Apache-Spark/4.0.5"}
    lines = [{"commitInfo": info}, *removes, {"add": add}]
    text = "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    (path / "_delta_log" / f"{number:020}.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("is_old", [True, False])
def test_what_another_engine_has_added_goes_with_a_repair(tmp_path: Path, is_old: bool) -> None:
    table = new_table(tmp_path)
    table.insert(rows(["São", "Rome"], 1, range(5)))
    if is_old:
        by_an_earlier_release(tmp_path)
    compacted_by_spark(tmp_path, "São")
    assert findings(tmp_path) != []
    repaired = hudi.Table.open(str(tmp_path)).repair(discard=True)
    assert repaired.left == ()
    for file in tmp_path.rglob("part-*.parquet"):
        file.unlink()
    assert findings(tmp_path) == []
    hudi.Table.open(str(tmp_path)).upsert(rows(["São"], 2, range(3)))
    held = read_by_all(tmp_path)
    assert len(held) == 10
    assert sum(held.values()) == 13


def test_a_file_that_is_named_twice_is_told(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.insert(rows(["São"], 1))
    [path] = named(tmp_path)
    add = AddAction(path, (tmp_path / path).stat().st_size, {"city": "São"}, 1, True, "{}")
    log = DeltaTable(str(tmp_path))
    log.create_write_transaction(
        [add],
        "append",
        log.schema(),
        ["city"],
        commit_properties=CommitProperties(custom_metadata={"hudi.step": "rebuild"}),
    )
    assert len(DeltaTable(str(tmp_path)).to_pyarrow_table()) == 2
    assert (Source.FORMAT, "named more than once") in findings(tmp_path)
    assert hudi.Table.open(str(tmp_path)).repair().left == ()
    assert read_by_all(tmp_path) == {"São-0": 1}


# --- what a log asks of its writers ---------------------------------------------------------------


def declare(path: Path, change: Callable[[dict[str, Any]], None], kind: str) -> None:
    """Change what a log's first version says, as its owner could have made it."""
    file = path / "_delta_log" / f"{0:020}.json"
    actions = actions_of(path, 0)
    for action in actions:
        if kind in action:
            change(action[kind])
    file.write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")


def test_rules_that_are_not_known_are_not_broken(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.insert(rows(["Rome"], 1))
    rules: Mapping[str, Any] = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "rowTracking", "appendOnly"],
    }
    declare(tmp_path, lambda protocol: protocol.update(rules), "protocol")
    before = files(tmp_path)
    with pytest.raises(UnsupportedTableError, match="deletionVectors, rowTracking"):
        hudi.Table.open(str(tmp_path)).upsert(rows(["Rome"], 2))
    assert files(tmp_path) == before
    assert [source for source, _ in findings(tmp_path)] == [Source.FORMAT]
    assert hudi.Table.open(str(tmp_path)).repair().left == ()
    hudi.Table.open(str(tmp_path)).upsert(rows(["Rome"], 3))
    assert read_by_all(tmp_path) == {"Rome-0": 3}


def test_a_log_that_only_grows_is_refused_before_the_first_file(tmp_path: Path) -> None:
    path = tmp_path / "own"
    new_table(path).insert(rows(["Rome"], 1))
    grows = {"delta.appendOnly": "true"}
    declare(path, lambda metadata: metadata["configuration"].update(grows), "metaData")
    write_deltalake(tmp_path / "found", rows(["Rome"], 1), configuration=grows)
    before = files(tmp_path)
    with pytest.raises(UnsupportedTableError, match=r"delta\.appendOnly"):
        hudi.Table.open(str(path)).insert(rows(["Oslo"], 1))
    with pytest.raises(UnsupportedTableError, match=r"delta\.appendOnly"):
        hudi.Table.adopt(str(tmp_path / "found"), record_key="id")
    assert files(tmp_path) == before


@pytest.mark.parametrize("source", ["delta", "parquet"])
def test_a_log_of_others_with_rules_is_not_replaced(tmp_path: Path, source: str) -> None:
    path = tmp_path / "found"
    write_deltalake(path, rows(["Rome"], 1))
    rules: Mapping[str, Any] = {
        "minWriterVersion": 7,
        "writerFeatures": ["appendOnly", "invariants", "rowTracking", "domainMetadata"],
    }
    declare(path, lambda protocol: protocol.update(rules), "protocol")
    before = files(path)
    adopt = partial(hudi.Table.adopt, path, record_key="id", source=source, format="delta")
    for dry_run in (True, False):
        with pytest.raises(UnsupportedTableError, match="domainMetadata, rowTracking"):
            adopt(dry_run=dry_run)
    assert files(path) == before
    adopt(rewrite=tmp_path / "new")
    assert files(path) == before
    assert read_by_all(tmp_path / "new") == {"Rome-0": 1}


def test_timestamps_without_zone_bring_their_feature(tmp_path: Path) -> None:
    table = new_table(tmp_path)
    table.insert(rows(["Rome"], 1))
    protocol = DeltaTable(str(tmp_path)).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    table.alter(add_columns={"timestamps": pa.list_(pa.timestamp("us"))})
    protocol = DeltaTable(str(tmp_path)).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert protocol.reader_features == ["timestampNtz"]
    assert sorted(protocol.writer_features or ()) == ["appendOnly", "invariants", "timestampNtz"]
    timestamps = pa.array([None], pa.list_(pa.timestamp("us")))
    table.upsert(rows(["Rome"], 2).append_column("timestamps", timestamps))
    assert read_by_all(tmp_path) == {"Rome-0": 2}


def test_a_checkpoint_that_fails_undoes_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: DeltaTable) -> None:
        raise OSError("The disk is full")

    monkeypatch.setattr(DeltaTable, "create_checkpoint", fails)
    table = new_table(tmp_path)
    for n in range(10):
        table.upsert(rows(["Rome"], n))
    assert version(tmp_path) == 10
    assert not list((tmp_path / "_delta_log").glob("*.parquet"))
    assert read_by_all(tmp_path) == {"Rome-0": 9}
