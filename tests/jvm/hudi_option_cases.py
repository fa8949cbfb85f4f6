"""Hudi's options are all known here; those of commits mean the same."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.config.foreign import foreign_options
from hudi_core.config.option_warnings import DECLARED_NAMES
from hudi_core.services.opening import open_table
from tests.jvm.engines import HUDI, Engine
from tests.jvm.prepare import FOLDER

ROWS = pa.table({"id": ["a", "b"], "city": ["Rome", "Oslo"], "ts": [1, 2]})
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.datasource.write.recordkey.field": "id",
    "hoodie.datasource.write.partitionpath.field": "city",
    "hoodie.table.ordering.fields": "ts",
    "hoodie.write.auto.upgrade": "false",
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
}
SINK = "_hudi_streaming_sink_checkpoint"
BUILDER = b"ConfigProperty$PropertyBuilder"
FIELD = b"Lorg/apache/hudi/common/config/ConfigProperty;"


def config_classes() -> list[str]:
    """Return the classes of Hudi's bundle that declare options."""
    [bundle] = (FOLDER / HUDI.jars).glob("hudi-spark*.jar")
    with zipfile.ZipFile(bundle) as jar:
        names = [one for one in jar.namelist() if one.startswith("org/apache/hudi/")]
        found = []
        for name in filter(lambda one: one.endswith(".class"), names):
            code = jar.read(name)
            if BUILDER in code and FIELD in code:
                found.append(name.removesuffix(".class").replace("/", "."))
        return found


def extra(path: Path) -> list[dict[str, str]]:
    """Extra metadata of each write but the schema, by requested time."""
    client = open_table(str(path), {}).client
    kept = [client.read_commit(one).extra_metadata for one in client.timeline().completed_writes()]
    return [{key: value for key, value in one.items() if key != "schema"} for one in kept]


def test_every_option_is_known(hudi_spark: Engine) -> None:
    declared = hudi_spark.config_properties(config_classes())
    assert len(declared) > 700
    foreign = foreign_options()
    names = {name for key, others, _ in declared for name in (key, *others)}
    assert not {name for name in names if name not in DECLARED_NAMES and not foreign.of(name)}


def test_no_default_of_hudi_is_refused(hudi_spark: Engine) -> None:
    """Who writes Hudi's defaults down asks for nothing."""
    refused = {
        (key, default): line.section.title
        for key, _, default in hudi_spark.config_properties(config_classes())
        for line in foreign_options().of(key)
        if default not in ("None", "") and key not in DECLARED_NAMES
        if line.section.kind.startswith("refused") and line.is_requested(default)
    }
    assert refused == {}


def test_commits_keep_options_by_prefix_as_hudi_does(hudi_spark: Engine, tmp_path: Path) -> None:
    options = {
        **OPTIONS,
        "hoodie.datasource.write.commitmeta.key.prefix": "ingest.",
        "ingest.source": "kafka",
        "_not": "x",
    }
    hudi_spark.save(ROWS, tmp_path / "hudi", options)
    hudi.write(ROWS, str(tmp_path / "ours"), options=options)
    for name in ("hudi", "ours"):
        [kept] = extra(tmp_path / name)
        mine = {key: value for key, value in kept.items() if key in options or key == "source"}
        assert mine == {"ingest.source": "kafka"}, name
    hudi_spark.save(ROWS, tmp_path / "default", {**OPTIONS, "_mine": "1"})
    assert extra(tmp_path / "default")[0]["_mine"] == "1"


def test_hudi_goes_on_from_its_checkpoint_after_our_commits(
    hudi_spark: Engine, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    hudi.write(ROWS, str(path), options=OPTIONS)
    batch = json.dumps({"default_single_writer": "41"})
    hudi_spark.save(ROWS, path, {**OPTIONS, SINK: batch, "_": "x"})
    assert hudi_spark.checkpoint(path, SINK, "default_single_writer") == "41"
    for number in range(3):
        hudi.write(ROWS, str(path), options={**OPTIONS, "_n": number})
    assert [SINK in one for one in extra(path)] == [False, True, True, True, True]
    assert hudi_spark.checkpoint(path, SINK, "default_single_writer") == "41"
    assert hudi_spark.checkpoint(path, SINK, "another") is None


def test_idempotent_writes_are_remembered_over_commits_of_hudi(
    hudi_spark: Engine, tmp_path: Path
) -> None:
    path = tmp_path / "table"
    first = hudi.write(ROWS, str(path), options=OPTIONS, idempotency=("job", 7))
    assert first is not None
    for _ in range(2):
        hudi_spark.save(ROWS, path, OPTIONS)
    again = hudi.write(ROWS, str(path), options=OPTIONS, idempotency=("job", 7))
    assert again is not None
    assert (again.is_repetition, again.instant) == (True, first.instant)
    # Hudi archives what it likes
    for _ in range(6):
        hudi_spark.save(
            ROWS,
            path,
            {
                **OPTIONS,
                "hoodie.archive.automatic": "true",
                "hoodie.clean.automatic": "true",
                "hoodie.clean.commits.retained": "1",
                "hoodie.keep.min.commits": "2",
                "hoodie.keep.max.commits": "3",
            },
        )
    now = hudi.Table.open(str(path))
    assert first.instant not in now.timeline.instants
    again = now.upsert(ROWS, idempotency=("job", 7))
    assert (again.is_repetition, again.instant) == (True, first.instant)
    assert again.inserted == 2
    assert sorted(hudi_spark.values(path, ["id", "city", "ts"])) == sorted(
        tuple(row.values()) for row in ROWS.to_pylist()
    )


@pytest.mark.parametrize("key", ["hoodie.table.idempotent.writes", "hoodie.table.name"])
def test_hudi_leaves_our_properties_alone(hudi_spark: Engine, tmp_path: Path, key: str) -> None:
    path = tmp_path / "table"
    hudi.write(ROWS, str(path), options=OPTIONS, idempotency=("job", 1))
    before = open_table(str(path), {}).client.config.raw[key]
    hudi_spark.save(ROWS, path, OPTIONS)
    assert open_table(str(path), {}).client.config.raw[key] == before
