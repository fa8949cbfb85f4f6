"""Hudi's options that are not declared here, and their treatment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import hudi_core as hudi
from hudi_core.config.foreign import ForeignOptions, OptionTreatment, foreign_options
from hudi_core.config.option_warnings import DECLARED_NAMES, known_names, spellings
from hudi_core.config.read import ReadConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import InvalidOptionError
from tests.tables import new_table, rows

ROWS = rows("a", ts=1)
OPTIONS = foreign_options()


def test_a_declared_option_is_declared_only() -> None:
    """Only its values that are not built yet may stand here."""
    for name in DECLARED_NAMES:
        for line in OPTIONS.of(name):
            kind = line.section.kind
            later, quiet = (kind is one for one in (OptionTreatment.LATER, OptionTreatment.QUIET))
            advice = f"{name} is declared: take it out of hudi_options.txt"
            assert later or (quiet and line.name != name), advice


def test_no_line_stands_twice() -> None:
    for section, lines in OPTIONS.sections.items():
        names = [line.name for line in lines]
        assert len(names) == len(set(names)), section.title
        assert names, section.title
        if section.kind in (OptionTreatment.REFUSED_IN_READS, OptionTreatment.REFUSED_IN_WRITES):
            assert all(line.harmless is not None for line in lines), section.title
        if section.kind is OptionTreatment.LATER:
            assert any(line.harmless is not None for line in lines), section.title
    for name in OPTIONS.names:
        assert len({line.section.kind for line in OPTIONS.of(name)}) == 1, name


@pytest.mark.impure
def test_the_file_is_read_when_it_is_asked_for() -> None:
    check = (
        "import hudi_core, pyspark_hudi\nhudi_core.Table, hudi_core.write\n"
        "from hudi_core.config.foreign import foreign_options\n"
        "assert foreign_options.cache_info().currsize == 0\n"
    )
    subprocess.run([sys.executable, "-c", check], check=True)


def test_spark_hands_names_over_in_lower_case() -> None:
    name = "hoodie.metadata.index.column.stats.inMemory.projection.threshold"
    assert spellings()[name.lower()] == name
    assert spellings()["txnappid"] == "txnAppId"
    assert not spellings().keys() & known_names()


# --- what is refused
@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("hoodie.precommit.validators", "com.acme.Check", "is none of"),
        ("hoodie.prewrite.validators", "com.acme.Check", "not validated"),
        ("hoodie.write.schema", '{"type":"record"}', "columns that they have"),
        ("hoodie.avro.schema", '{"type":"record"}', "columns that they have"),
        ("hoodie.partition.ttl.strategy.class", "com.acme.Ttl", "is none of"),
        ("hoodie.write.commit.callback.on", "true", "no class is called back"),
        ("hoodie.client.init.callback.classes", "com.acme.Hello", "no class is called back"),
        ("parquet.encryption.footer.key", "k1", "not encrypted"),
        ("parquet.encryption.column.keys", "k2:fare", "not encrypted"),
        ("parquet.crypto.factory.class", "org.apache.X", "not encrypted"),
        ("hoodie.parquet.write.config.injector.class", "com.acme.Encrypt", "not encrypted"),
        ("hoodie.bulkinsert.user.defined.partitioner.class", "com.acme.P", "sort.mode alone"),
        ("hoodie.index.class", "com.acme.Index", "no class of Java"),
        ("hoodie.write.merge.handle.class", "com.acme.Merge", "no class of Java"),
        ("hoodie.allow.operation.metadata.field", "true", "kind of change"),
        ("hoodie.parquet.outputtimestamptype", "INT96", "microseconds"),
        ("hoodie.datasource.write.slash.separated.date.partitioning", "true", "partition paths"),
        ("hoodie.datasource.overwrite.mode", "STATIC", "that overwrites drops"),
        ("hoodie.cleaner.policy.failed.writes", "NEVER", "undoes what a dead one left"),
        ("hoodie.metaserver.enabled", "true", "kept with the table"),
        ("hoodie.metadata.write.concurrency.mode", "NON_BLOCKING", "one writer at a time"),
        ("hoodie.write.lock.zookeeper.url", "zk1", "zookeeper is not chosen"),
        ("hoodie.write.lock.dynamodb.table", "locks", "dynamodb is not chosen"),
    ],
)
def test_what_changes_rows_or_safety_is_refused(name: str, text: str, why: str) -> None:
    with pytest.raises(InvalidOptionError, match=why) as caught:
        WriteConfig.from_options({name: text})
    assert caught.value.key == name
    ReadConfig.from_options({name: text})


MERGERS = "org.apache.hudi.HoodieSparkRecordMerger, "
MERGERS += "org.apache.hudi.common.model.HoodieAvroRecordMerger"
LOCK, TTL = "hoodie.write.lock.", "hoodie.partition.ttl."


@pytest.mark.parametrize(
    "options",
    [
        {"hoodie.precommit.validators": ""},
        {"hoodie.precommit.validators.failure.policy": "WARN_LOG"},
        {f"{TTL}inline": "False"},
        {f"{TTL}inline": "false", f"{TTL}strategy.days.retain": "9"},
        {f"{TTL}strategy.days.retain": "-1"},
        {"hoodie.write.commit.callback.on": "false"},
        {"hoodie.write.commit.callback.http.url": "http://127.0.0.1"},
        {"hoodie.writestatus.class": "org.apache.hudi.client.WriteStatus"},
        {"hoodie.datasource.write.record.merger.impls": MERGERS},
        {"hoodie.datasource.overwrite.mode": "dynamic"},
        {"hoodie.clean.failed.writes.policy": "lazy"},
        {f"{LOCK}zookeeper.url": "zk", f"{LOCK}provider": "file_system"},
        {f"{LOCK}zookeeper.session_timeout_ms": "60000"},
        {f"{LOCK}heartbeat_interval_ms": "1000"},
        {"hoodie.datasource.read.incr.path.glob": "2026/*"},
    ],
)
def test_what_asks_for_what_happens_anyway_is_accepted(options: dict[str, str]) -> None:
    WriteConfig.from_options(options)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hoodie.datasource.read.incr.path.glob", "2026/*"),
        ("hoodie.datasource.read.incr.filters", "x"),
        ("hoodie.datasource.read.paths", "/elsewhere"),
        ("hoodie.datasource.read.extract.partition.values.from.path", "true"),
        ("hoodie.datasource.read.schema.use.end.instanttime", "true"),
    ],
)
def test_what_would_change_the_rows_of_a_read_is_refused(name: str, text: str) -> None:
    with pytest.raises(InvalidOptionError, match=r"has now|from the files|all of them"):
        ReadConfig.from_options({name: text})


def test_nothing_is_written_where_an_option_is_refused(tmp_path: Path) -> None:
    options = {"hoodie.prewrite.validators": "com.acme.Check"}
    for attempt in (
        lambda: new_table(tmp_path, ROWS.schema, options),
        lambda: hudi.write(ROWS, tmp_path, options=options),
    ):
        with pytest.raises(InvalidOptionError, match=r"com\.acme\.Check.*not validated.*Drop"):
            attempt()
    assert not list(tmp_path.iterdir())
    table = new_table(tmp_path, ROWS.schema)
    with pytest.raises(InvalidOptionError):
        table.upsert(ROWS, options=options)
    assert not list(table.timeline.instants)
    assert hudi.read(None, str(tmp_path), options).num_rows == 0


# --- the file
def test_conditions_and_patterns() -> None:
    found = ForeignOptions(
        "# a comment\n"
        "[later; needs a.on=true] a thing\n"
        "a.way = Fast, slow\n"
        "a.detail\n"
        "\n"
        "[refused in writes; unless b.off] another\n"
        "b.*.c =\n"
        "b.x.c = 7\n"
    )
    assert found.names == {"a.way", "a.detail", "b.x.c"}
    assert [line.harmless for line in found.of("b.y.c")] == [()]
    assert [line.harmless for line in found.of("b.x.c")] == [("7",)]
    assert not found.of("b..d")
    assert not list(found.wishes({"a.way": "other"}))
    assert not list(found.wishes({"a.way": "FAST, slow", "a.on": "true"}))
    [(section, names)] = found.wishes({"a.detail": "1", "a.way": "fast, other", "a.on": "TRUE"})
    assert (section.title, names) == ("a thing", ["a.way", "a.detail"])
    found.refuse({"b.y.c": "1", "b.off": ""}, OptionTreatment.REFUSED_IN_WRITES)
    found.refuse({"b.y.c": "1"}, OptionTreatment.REFUSED_IN_READS)
    with pytest.raises(InvalidOptionError, match="another"):
        found.refuse({"b.y.c": "1"}, OptionTreatment.REFUSED_IN_WRITES)


def test_a_secret_is_not_shown() -> None:
    options = ForeignOptions("[refused in writes] a thing\nx.secret.key =\n")
    with pytest.raises(InvalidOptionError) as caught:
        options.refuse({"x.secret.key": "canary"}, OptionTreatment.REFUSED_IN_WRITES)
    assert "canary" not in f"{caught.value} {caught.value.facts}"
