"""Paths and files of a Delta log, and what readers see while another log takes its place."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
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
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

import hudi_core as hudi
from delta_format.handles import forget_handles
from delta_format.paths import plain, spelled
from hudi_core.errors import CorruptMetadataError, HudiError, UnsafePathError, UnsupportedTableError
from hudi_core.services.mending.differences import Source
from hudi_core.storage.posix import PosixStorage
from tests import tables
from tests.formats.delta_tables import actions_of, version
from tests.formats.service_tables import READERS, bag
from tests.formats.two_steps import batch, small_table
from tests.readers import by_duckdb
from tests.tables import rows_of
from tests.unit.refusals import files
from tests.unit.test_storage_posix import beside, by_java, checksum, is_readable_by_java

CITY_ROWS = pa.schema([("id", pa.string()), ("city", pa.string()), ("n", pa.int64())])
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
LAYOUTS: Mapping[str, tuple[list[str | None], str, str]] = {
    "plain": (PLAIN, "false", "false"),
    "encoded": (ENCODED, "true", "true"),
}


def of_cities(cities: Sequence[str | None], n: int, keys: Iterable[int] = (0,)) -> pa.Table:
    return rows_of(CITY_ROWS, *((f"{city}-{key}", city, n) for city in cities for key in keys))


def by_city(path: Path, hive: str = "false", encode: str = "false") -> hudi.Table:
    options = {
        "hoodie.datasource.write.hive_style_partitioning": hive,
        "hoodie.datasource.write.partitionpath.urlencode": encode,
    }
    return tables.new_table(path, CITY_ROWS, options, format="delta")


def read_by_all(path: Path) -> dict[str, int]:
    """The rows, which all readers find."""
    ours = hudi.Table.open(path).to_arrow(columns=CITY_ROWS.names).to_pylist()
    by_query = QueryBuilder().register("t", DeltaTable(str(path))).execute("select * from t")
    found = {
        "deltalake": DeltaTable(str(path)).to_pyarrow_table(columns=CITY_ROWS.names).to_pylist(),
        "datafusion": pa.table(by_query.read_all()).select(CITY_ROWS.names).to_pylist(),
        "polars": pl.scan_delta(str(path)).select(CITY_ROWS.names).collect().to_dicts(),
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
    found = hudi.Table.open(path).validate()
    return [(one.source, one.found) for one in found.differences]


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


@pytest.mark.parametrize("kind", LAYOUTS)
def test_every_engine_resolves_what_the_log_names(tmp_path: Path, kind: str) -> None:
    cities, hive, encode = LAYOUTS[kind]
    table = by_city(tmp_path, hive, encode)
    table.insert(of_cities(cities, 1, (0, 1)))
    table.upsert(of_cities(cities, 2))
    table.delete(of_cities(cities[:1], 0, (1,)))
    table.insert_overwrite(of_cities(cities[1:2], 3))
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
    table = by_city(tmp_path)
    for n in range(10):
        table.upsert(of_cities(PLAIN, n))
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
    table.upsert(of_cities(PLAIN, 10))
    assert set(read_by_all(tmp_path).values()) == {10}
    assert findings(tmp_path) == []


def test_an_undone_write_leaves_the_spelling_of_before(tmp_path: Path) -> None:
    table = by_city(tmp_path)
    table.insert(of_cities(PLAIN, 1))
    before = named(tmp_path)
    done = table.upsert(of_cities(PLAIN, 2))
    table.rollback(done.instant)
    assert named(tmp_path) == before
    assert set(read_by_all(tmp_path).values()) == {1}


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
    cities, hive, encode = LAYOUTS["encoded"]
    table = by_city(path, hive, encode)
    table.insert(of_cities([*cities, "Rome"], 1, (0, 1)))
    table.upsert(of_cities(cities[:1], 2))
    by_an_earlier_release(path)
    return path


@pytest.fixture
def old(earlier: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(earlier, tmp_path / "table"))


def test_a_log_of_an_earlier_release_is_written_on_and_repaired(old: Path) -> None:
    table = hudi.Table.open(old)
    table.upsert(of_cities([*ENCODED, "Rome"], 3, (0,)))
    table.delete(of_cities(["São Paulo/x"], 0, (1,)))
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
    repaired = hudi.Table.open(old).repair()
    assert repaired.left == ()
    assert findings(old) == []
    assert read_by_all(old) == held
    # neither a present file nor the record of a removed one is misspelled
    assert not any("%C3" in file.read_text() for file in (old / "_delta_log").glob("*.json"))
    present = named(old).keys()
    assert not present & set(vacuum(old, full=True))
    assert read_by_all(old) == held
    hudi.Table.open(old).upsert(of_cities(ENCODED, 4))
    assert read_by_all(old) == held | {f"{city}-0": 4 for city in ENCODED}


def test_a_clean_log_goes_on_through_a_repair(tmp_path: Path) -> None:
    table = by_city(tmp_path)
    table.insert(of_cities(PLAIN, 1))
    before = version(tmp_path)
    compacted_by_spark(tmp_path, "São")
    repaired = hudi.Table.open(tmp_path).repair(discard=True)
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
    table = by_city(tmp_path)
    table.insert(of_cities(["São", "Rome"], 1, range(5)))
    if is_old:
        by_an_earlier_release(tmp_path)
    compacted_by_spark(tmp_path, "São")
    assert findings(tmp_path) != []
    repaired = hudi.Table.open(tmp_path).repair(discard=True)
    assert repaired.left == ()
    for file in tmp_path.rglob("part-*.parquet"):
        file.unlink()
    assert findings(tmp_path) == []
    hudi.Table.open(tmp_path).upsert(of_cities(["São"], 2, range(3)))
    held = read_by_all(tmp_path)
    assert len(held) == 10
    assert sum(held.values()) == 13


def test_a_file_that_is_named_twice_is_told(tmp_path: Path) -> None:
    table = by_city(tmp_path)
    table.insert(of_cities(["São"], 1))
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
    assert hudi.Table.open(tmp_path).repair().left == ()
    assert read_by_all(tmp_path) == {"São-0": 1}


def declare(path: Path, change: Callable[[dict[str, Any]], None], kind: str) -> None:
    """Change what a log's first version says, as its owner could have made it."""
    file = path / "_delta_log" / f"{0:020}.json"
    actions = actions_of(path, 0)
    for action in actions:
        if kind in action:
            change(action[kind])
    file.write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")


def test_rules_that_are_not_known_are_not_broken(tmp_path: Path) -> None:
    table = by_city(tmp_path)
    table.insert(of_cities(["Rome"], 1))
    rules: Mapping[str, Any] = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["deletionVectors"],
        "writerFeatures": ["deletionVectors", "rowTracking", "appendOnly"],
    }
    declare(tmp_path, lambda protocol: protocol.update(rules), "protocol")
    before = files(tmp_path)
    with pytest.raises(UnsupportedTableError, match="with rowTracking"):
        hudi.Table.open(tmp_path).upsert(of_cities(["Rome"], 2))
    assert files(tmp_path) == before
    assert [source for source, _ in findings(tmp_path)] == [Source.FORMAT]
    assert hudi.Table.open(tmp_path).repair().left == ()
    hudi.Table.open(tmp_path).upsert(of_cities(["Rome"], 3))
    assert read_by_all(tmp_path) == {"Rome-0": 3}


def test_a_log_that_only_grows_is_refused_before_the_first_file(tmp_path: Path) -> None:
    path = tmp_path / "own"
    by_city(path).insert(of_cities(["Rome"], 1))
    grows = {"delta.appendOnly": "true"}
    declare(path, lambda metadata: metadata["configuration"].update(grows), "metaData")
    write_deltalake(tmp_path / "found", of_cities(["Rome"], 1), configuration=grows)
    before = files(tmp_path)
    with pytest.raises(UnsupportedTableError, match=r"delta\.appendOnly"):
        hudi.Table.open(path).insert(of_cities(["Oslo"], 1))
    with pytest.raises(UnsupportedTableError, match=r"delta\.appendOnly"):
        hudi.Table.adopt(tmp_path / "found", record_key="id")
    assert files(tmp_path) == before


@pytest.mark.parametrize("source", ["delta", "parquet"])
def test_a_log_of_others_with_rules_is_not_replaced(tmp_path: Path, source: str) -> None:
    path = tmp_path / "found"
    write_deltalake(path, of_cities(["Rome"], 1))
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
    table = by_city(tmp_path)
    table.insert(of_cities(["Rome"], 1))
    protocol = DeltaTable(str(tmp_path)).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    table.alter(add_columns={"timestamps": pa.list_(pa.timestamp("us"))})
    protocol = DeltaTable(str(tmp_path)).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (3, 7)
    assert protocol.reader_features == ["timestampNtz"]
    assert sorted(protocol.writer_features or ()) == ["appendOnly", "invariants", "timestampNtz"]
    timestamps = pa.array([None], pa.list_(pa.timestamp("us")))
    table.upsert(of_cities(["Rome"], 2).append_column("timestamps", timestamps))
    assert read_by_all(tmp_path) == {"Rome-0": 2}


def test_a_failed_checkpoint_undoes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: DeltaTable) -> None:
        raise OSError("The disk is full")

    monkeypatch.setattr(DeltaTable, "create_checkpoint", fails)
    table = by_city(tmp_path)
    for n in range(10):
        table.upsert(of_cities(["Rome"], n))
    assert version(tmp_path) == 10
    assert not list((tmp_path / "_delta_log").glob("*.parquet"))
    assert read_by_all(tmp_path) == {"Rome-0": 9}


USES: dict[str, Callable[[str], object]] = {
    "read": lambda path: hudi.Table.open(path).to_arrow(),
    "incremental": lambda path: hudi.Table.open(path).incremental(),
    "insert": lambda path: hudi.Table.open(path).insert(batch(2, "a")),
    "delete": lambda path: hudi.Table.open(path).delete(batch(2, "b")),
    "alter": lambda path: hudi.Table.open(path).alter(add_columns={"more": pa.int64()}),
    "validate": lambda path: hudi.Table.open(path).validate(),
    "repair": lambda path: hudi.Table.open(path).repair(),
    "away": lambda path: hudi.Table.open(path).convert("native"),
}


@pytest.mark.parametrize("what", ["folder", "version"])
def test_a_link_out_of_the_table_is_not_opened(tmp_path: Path, what: str) -> None:
    table = small_table(tmp_path / "t", "delta")
    log = Path(table.path, "_delta_log")
    linked = log if what == "folder" else log / f"{1:020}.json"
    outside = tmp_path / "outside"
    linked.rename(outside)
    linked.symlink_to(outside)
    before = files(tmp_path)
    for name, use in USES.items():
        with pytest.raises(HudiError, match="a symbolic link leads it") as caught:
            use(table.path)
        assert isinstance(caught.value, UnsafePathError), name
    assert files(tmp_path) == before


def test_a_linked_log_makes_no_table(tmp_path: Path) -> None:
    found = tmp_path / "found"
    write_deltalake(found, batch(1, "a"))
    (found / "_delta_log").rename(tmp_path / "outside")
    (found / "_delta_log").symlink_to(tmp_path / "outside")
    native = small_table(tmp_path / "native", "native")
    Path(native.path, "_delta_log").symlink_to(tmp_path / "outside")
    outside = files(tmp_path / "outside")
    with pytest.raises(UnsafePathError, match="a symbolic link leads it"):
        hudi.Table.adopt(found, record_key="id")
    with pytest.raises(UnsafePathError, match="a symbolic link leads it"):
        native.convert("delta")
    assert files(tmp_path / "outside") == outside
    assert hudi.Table.open(native.path).format == "native"


@pytest.mark.parametrize("name", ["next", "old", "checkpoint"])
def test_a_file_that_is_too_large_is_not_opened(tmp_path: Path, name: str) -> None:
    """It has holes: whoever reads it as a whole has no memory left."""
    table = small_table(tmp_path / "t", "delta")
    names = {
        "next": f"{DeltaTable(table.path).version() + 1:020}.json",
        "old": f"{0:020}.json",
        "checkpoint": f"{0:020}.checkpoint.parquet",
    }
    path = Path(table.path, "_delta_log", names[name])
    with path.open("ab") as file:
        file.truncate(8 << 30)
    # this process has had the log open before; a new one has not
    for one in ("read", "insert") if name == "next" else ():
        with pytest.raises(CorruptMetadataError, match=f"{names[name]}.*are more than"):
            USES[one](table.path)
    forget_handles()
    with pytest.raises(CorruptMetadataError, match=f"{names[name]}.*are more than"):
        USES["read"](table.path)
    [found] = hudi.Table.open(table.path).validate().differences
    assert (found.source, str(path) in str(found.found)) == (Source.FORMAT, True)
    assert hudi.Table.open(table.path).repair().left == ()
    assert not path.exists() or path.stat().st_size < 1 << 20
    assert hudi.Table.open(table.path).to_arrow().num_rows == 3


def test_what_dead_writers_left_goes_with_a_checkpoint(path: Path) -> None:
    table = small_table(path, "delta")
    log = Path(table.path, "_delta_log")
    old = [f"{1:020}.json#1", f"{3:020}.checkpoint.parquet#12", "_last_checkpoint#1"]
    kept = [f"{2:020}.json#1", "notes#", "a#b"]
    for name in [*old, *kept]:
        (log / name).write_text("{")
    two_days_ago = time.time() - 2 * 86_400
    for name in [*old, *kept[1:]]:
        os.utime(log / name, (two_days_ago, two_days_ago))
    # what Delta-Spark leaves beside a log is in use
    (log / "_last_vacuum_info").write_text("{}")
    (log / f".{0:020}.json.crc").write_text("")
    assert table.validate().orphans == tuple(f"_delta_log/{name}" for name in sorted([*old, *kept]))
    while DeltaTable(table.path).version() < 9:
        assert all((log / name).exists() for name in old)
        table.upsert(batch(2, "a"))
    assert list(log.glob("*.checkpoint.parquet"))
    assert not any((log / name).exists() for name in old)
    assert all((log / name).exists() for name in kept)


def with_checkpoints_every(table: hudi.Table, versions: str) -> hudi.Table:
    """A table whose owner has set how often its log gets a checkpoint."""
    every = {"delta.checkpointInterval": versions}
    declare(Path(table.path), lambda found: found["configuration"].update(every), "metaData")
    return hudi.Table.open(table.path)


def test_checksums_of_a_log_do_not_stay_when_they_are_wrong(path: Path) -> None:
    table = with_checkpoints_every(small_table(path, "delta"), "1")
    table.upsert(batch(2, "a"))
    last = path / "_delta_log/_last_checkpoint"
    by_java(last, last.read_bytes())
    assert table.validate().is_valid
    table.upsert(batch(2, "b"))
    assert is_readable_by_java(last)
    # a release before this one
    beside(last).write_bytes(checksum(b"as it was"))
    [found] = table.validate().differences
    assert found.source is Source.CHECKSUM
    assert found.subject == "_delta_log/._last_checkpoint.crc"
    assert table.repair().left == ()
    assert is_readable_by_java(last)


@pytest.mark.parametrize("versions", ["0", "-1", "often"])
def test_a_number_of_versions_that_is_none_is_not_gone_by(
    path: Path, versions: str, own_messages: Callable[[], list[str]]
) -> None:
    table = with_checkpoints_every(small_table(path, "delta"), versions)
    table.upsert(batch(2, "a"))
    assert DeltaTable(table.path).to_pyarrow_table().num_rows == table.count()
    assert own_messages() == []
    assert not (path / "_delta_log/_last_checkpoint").exists()


PLAIN_ROWS = pa.table({"id": ["a", "b", "c"], "city": ["rome", "rome", "oslo"], "n": [1, 2, 3]})

Watch = Callable[[Path], list[Path]]


def seen(path: Path) -> Counter[str] | None:
    """Return what deltalake sees; ``None`` where it says that it cannot read the table."""
    try:
        found = DeltaTable(str(path)).to_pyarrow_table()
    except (DeltaError, OSError):
        return None
    return bag(found, sorted(found.column_names))


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Watch:
    """Return what begins to copy a table after each deletion of a file."""
    real = PosixStorage.delete

    def begin(path: Path) -> list[Path]:
        copies: list[Path] = []

        def delete(self: Any, name: str) -> None:
            real(self, name)
            copies.append(tmp_path / f"copy-{len(copies)}")
            shutil.copytree(path, copies[-1])

        monkeypatch.setattr(PosixStorage, "delete", delete)
        return copies

    return begin


def test_a_table_that_gets_partitions_is_replaced_in_one_version(path: Path, watch: Watch) -> None:
    owned = {"delta.deletedFileRetentionDuration": "interval 9 days"}
    write_deltalake(path, PLAIN_ROWS.slice(0, 2), configuration=owned)
    write_deltalake(path, PLAIN_ROWS.slice(2), mode="append")
    before = seen(path)
    copies = watch(path)
    hudi.Table.adopt(path, record_key="id", partition_by="city", format="delta")
    assert copies
    assert all(seen(one) == before for one in copies)
    table = DeltaTable(str(path))
    assert table.metadata().partition_columns == ["city"]
    assert owned.items() <= table.metadata().configuration.items()
    assert [one["version"] for one in table.history()] == [2, 1, 0]
    for read in READERS["delta"]:
        assert bag(read(path), PLAIN_ROWS.column_names) == bag(PLAIN_ROWS, PLAIN_ROWS.column_names)
    assert hudi.Table.open(path).validate().is_valid


def test_a_damaged_log_shows_no_older_state_while_it_goes(path: Path, watch: Watch) -> None:
    table = small_table(path, "delta")
    for key in "cde":
        table.insert(batch(2, key))
    before = seen(path)
    newest = max((path / "_delta_log").glob("*.json"))
    newest.write_bytes(newest.read_bytes()[:40])
    assert seen(path) is None
    copies = watch(path)
    assert hudi.Table.open(path).repair().left == ()
    looks = [seen(one) for one in copies]
    assert looks.count(None) >= 4
    assert all(one in (None, before) for one in looks)
    assert seen(path) == before
