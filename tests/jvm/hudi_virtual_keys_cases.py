"""Our tables that do not store their record keys, read and written on by Hudi-Spark.

It knows tables without any meta column (``hoodie.populate.meta.fields=false``), and takes those
whose key alone is virtual for such: their properties say so to other engines. So it makes the same
keys of the same columns.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

import hudi_core as hudi
from hudi_core.errors import InvalidOptionError, UnsupportedTableError
from tests.jvm.commands import succeed
from tests.jvm.engines import Engine
from tests.jvm.histories import Model, Step, made, read_by_hudi, read_by_us
from tests.jvm.hudi_made_cases import ENCODED, agree
from tests.jvm.report import OwnFailureError, own_failure
from tests.jvm.writers import HudiSpark, Shape, ours

LEVELS: Final = {
    "no meta columns": {"hoodie.populate.meta.fields": "false"},
    "no key column": {"hoodie.recordkey.virtual.enabled": "true"},
}
SHAPES: Final = {
    "simple": Shape("9", partition="city", ordering="ts", options=ENCODED),
    "complex": Shape("9", key="id,flag", partition="city", ordering="ts", options=ENCODED),
    "not partitioned": Shape("9", ordering="ts"),
}


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("level", LEVELS)
def test_read_and_upserted(
    hudi_spark: Engine, tmp_path: Path, level: str, shape: str, version: str
) -> None:
    """Each updates the rows of the other: it makes the same keys."""
    path = tmp_path / "table"
    own = replace(SHAPES[shape], version=version).with_options(LEVELS[level])
    # the options of the level are ours alone, and the table says what Hudi-Spark has to know
    theirs = replace(SHAPES[shape], version=version)
    theirs = theirs.with_options({"hoodie.populate.meta.fields": "false"})
    model, write = Model(is_ordered=True), HudiSpark(hudi_spark)
    for step in (Step("insert", range(12)), Step("upsert", [0, 1, 20], ts=2)):
        step.take(ours, path, own)
        model.take(step)
    agree(hudi_spark, path, model, "ours")
    begin = hudi.Table.open(str(path)).timeline.completed_writes()[0]
    for step in (Step("upsert", [0, 2, 20, 21], ts=3), Step("delete", [3])):
        step.take(write, path, theirs)
        model.take(step)
        agree(hudi_spark, path, model, f"its {step.operation}")
    for step in (Step("upsert", [0, 21, 22], ts=4), Step("delete", [2])):
        getattr(hudi.Table.open(str(path)), step.operation)(step.rows())
        model.take(step)
        agree(hudi_spark, path, model, f"our {step.operation}")
    if level == "no meta columns":
        return
    # its rows do not tell when they changed: that is said, and none is left out in silence
    with pytest.raises(UnsupportedTableError, match="do not say when they changed"):
        hudi.Table.open(str(path)).incremental(begin)


INDEXED: Final = {
    "hoodie.index.type": "RECORD_INDEX",
    "hoodie.metadata.global.record.level.index.enable": "true",
}


@pytest.mark.parametrize("version", ["8", "9"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_record_index_that_it_does_not_keep(
    hudi_spark: Engine, tmp_path: Path, level: str, version: str
) -> None:
    """It indexes no rows of such a table: we find them, and do not rely on the index."""
    path, shape = tmp_path / "table", replace(SHAPES["simple"], version=version)
    model, mine = Model(is_ordered=True), shape.with_options({**LEVELS[level], **INDEXED})
    step = Step("upsert", range(12))
    step.take(ours, path, mine)
    model.take(step)
    agree(hudi_spark, path, model, "ours")
    # without the option of the index it would drop it
    kept = {option: value for option, value in INDEXED.items() if "metadata" in option}
    theirs = shape.with_options({"hoodie.populate.meta.fields": "false", **kept})
    step = Step("upsert", [0, 20], ts=2)
    step.take(HudiSpark(hudi_spark), path, theirs)
    model.take(step)
    assert read_by_us(path) == model.content
    table = hudi.Table.open(str(path), INDEXED)
    [new] = table.to_arrow(filter=[("id", "=", made(20, 2)["id"])]).to_pylist()
    assert new["ts"] == 2
    with pytest.raises(InvalidOptionError, match="Hudi keeps no record index"):
        table.upsert(Step("upsert", [20], ts=3).rows())
    succeed("metadata drop", path, "record_index")
    option = "hoodie.metadata.global.record.level.index.enable=true"
    succeed("metadata index", path, "record_index", "--option", option)
    step = Step("upsert", [0, 20, 21], ts=3)
    step.take(ours, path, mine)
    model.take(step)
    agree(hudi_spark, path, model, "the index is built again")


@own_failure("Hudi-Spark makes another key of a stored date than of an incoming one")
def test_keys_of_dates(hudi_spark: Engine, tmp_path: Path) -> None:
    """It adds rows of its own table again; here such keys need consent."""
    shape = replace(SHAPES["not partitioned"], key="id,day")
    virtual = shape.with_options({"hoodie.populate.meta.fields": "false"})
    write, path = HudiSpark(hudi_spark), tmp_path / "its"
    for step in (Step("insert", range(3)), Step("upsert", range(3), ts=2)):
        step.take(write, path, virtual)
    own = shape.with_options(LEVELS["no key column"])
    with pytest.raises(InvalidOptionError, match=r"day is of type date32.* in silence"):
        Step("insert", range(3)).take(ours, tmp_path / "ours", own)
    count = sum(read_by_hudi(hudi_spark, path).values())
    if count == 6:
        raise OwnFailureError("every row is there twice")
    assert count == 3
