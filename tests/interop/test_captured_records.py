"""Records of our metadata tables beside those that Hudi-Spark made of the same rows.

What Hudi-Spark 1.2 made is kept as data; see ``tests/jvm/captured.py``. ``make interop`` compares
more, with Hudi-Spark itself.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from tests.jvm.captured import NAMES, captured
from tests.jvm.chapters import CHAPTERS, VERSIONS
from tests.jvm.comparison import compare_ranges, differences, in_the_type_before
from tests.jvm.typed_columns import COLUMNS
from tests.jvm.writers import ours


@pytest.mark.parametrize(("name", "version"), [*product(NAMES, VERSIONS)])
def test_records_are_those_of_hudi_spark(tmp_path: Path, name: str, version: str) -> None:
    made = CHAPTERS[name].make(ours, tmp_path / "table", version)
    theirs = captured()[name][version]
    assert made.keys() == theirs.keys()
    typed = name.startswith(("types", "nulls"))
    for partition in made:
        if typed and partition != "files":
            continue
        found = differences(made[partition], theirs[partition])
        if version == "8" and partition == "partition_stats":
            found = {key: found[key] for key in found.keys() - in_the_type_before(found).keys()}
        assert not found, (partition, found)
    if typed:
        columns = {key.partition(" | ")[0] for key in theirs["column_stats"]}
        assert columns - {*COLUMNS, "id", "city"} == set(META)
        for column in columns:
            unexplained = compare_ranges(made, theirs, column).unexplained
            assert not unexplained, unexplained


META = ("_hoodie_commit_time", "_hoodie_partition_path", "_hoodie_record_key")
