"""`hudi metadata` on tables with a metadata table, without one, and with a wrong one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli_runs import run, run_json
from tests.tables import new_table, rows

DURATION = re.compile(r" \(duration=[0-9]+\.[0-9]{2}sec\)$")


def told(command: str, *arguments: str | Path) -> list[str]:
    """Return what a command writes, without durations, which are there."""
    result = run("metadata", command, *arguments)
    assert result.exit_code == 0, result.stderr
    found = [line.strip() for line in result.stdout.splitlines() if line.strip()]
    assert any(DURATION.search(line) for line in found) or command == "stats"
    return [DURATION.sub("", line) for line in found]


def document(*arguments: str | Path, code: int = 0) -> Any:
    found = run_json("metadata", *arguments, code=code)
    assert found.pop("duration_s") >= 0
    assert found.pop("metadata_table").endswith("/.hoodie/metadata")
    return found


def refused(*arguments: str | Path) -> str:
    """Return the error of a command that cannot be carried out."""
    result = run("metadata", *arguments)
    assert result.exit_code == 1
    return result.stderr


@pytest.fixture
def path(tmp_path: Path) -> Path:
    some = rows("a-0", "a-1", "b-0", "b-1", city=[*"aabb"], fare=1)
    new_table(tmp_path / "trips", some, {"hoodie.metadata.enable": "false"}, name="trips")
    return tmp_path / "trips"


def test_the_life_of_a_metadata_table(path: Path) -> None:
    where = f"{path}/.hoodie/metadata"
    partitions = "Partitions: column_stats, files, partition_stats"
    assert told("create", path) == [f"Created Metadata Table in {where}", partitions]
    assert told("init", path, "--readonly") == [f"Opened Metadata Table in {where}"]
    assert told("init", path) == [f"Initialized Metadata Table in {where}"]
    right = "The metadata table is right; compared: files, column_stats, partition_stats"
    assert told("validate", path) == [right]
    [added] = told("index", path, "record_index")
    assert re.fullmatch(rf"Indexed record_index of {where}; the indexing is [0-9]{{17}}", added)
    [dropped] = told("drop", path, "partition_stats")
    assert dropped.startswith(f"Dropped partition_stats of {where}; the indexing is ")
    deleted, kept = told("delete", path, "--backup")
    assert deleted == f"Deleted Metadata Table in {where}"
    folder = Path(kept.removeprefix("Its files are in "))
    assert (folder / ".hoodie/hoodie.properties").exists()
    assert not (path / ".hoodie/metadata").exists()


def test_the_same_for_programs(path: Path) -> None:
    assert document("create", path) == {"partitions": ["column_stats", "files", "partition_stats"]}
    opened = document("init", path, "--readonly")
    assert (opened["readonly"], len(opened["partitions"])) == (True, 3)
    added = document("index", path, "bloom_filters")
    assert (added["partition"], len(added["instant"])) == ("bloom_filters", 17)
    assert document("drop", path, "bloom_filters")["partition"] == "bloom_filters"
    assert document("delete", path) == {"backup": None}
    assert document("create", path)["partitions"]
    backup = document("delete", path, "--backup")["backup"]
    assert Path(backup).is_dir()


def test_stats_have_the_names_of_the_rfc(path: Path) -> None:
    assert refused("stats", path)
    run("metadata", "create", path)
    found = document("stats", path)
    sizes = found.pop("partitions")
    total = found["totalBaseFileSizeInBytes"]
    assert total == sum(one["totalBaseFileSizeInBytes"] for one in sizes.values()) > 0
    assert found == {
        "partitionCount": 2,
        "lastCompactionTimestamp": None,
        "isInSync": True,
        "logFileCount": 4,
        "totalBaseFileSizeInBytes": total,
        "totalLogFileSizeInBytes": found["totalLogFileSizeInBytes"],
        "baseFileCount": 4,
    }
    shown = [re.split(r"  +", line) for line in told("stats", path)]
    assert [line for line in shown if len(line) == 2][:4] == [
        ["Base path", str(path)],
        ["partitionCount", "2"],
        ["lastCompactionTimestamp", "none"],
        ["isInSync", "true"],
    ]


def test_lists_say_who_tells(path: Path) -> None:
    listed = document("list-partitions", path)
    assert listed == {"source": "storage", "partitions": ["a", "b"]}
    assert told("list-partitions", path)[-1] == "2 partitions, listed from the storage"
    files = ("list-files", path, "--partition")
    stored = document(*files, "a")
    assert (stored["source"], stored["partition"]) == ("storage", "a")
    run("metadata", "create", path)
    assert document("list-partitions", path) == {**listed, "source": "metadata table"}
    assert document(*files, "a") == {**stored, "source": "metadata table"}
    assert told(*files, "a")[-1] == "1 files, listed from the metadata table"
    assert "no partition 'c'" in refused(*files, "c")


def test_a_wrong_metadata_table_fails_with_a_code_of_its_own(path: Path) -> None:
    run("metadata", "create", path)
    file = next(path.glob("a/*.parquet"))
    size = file.stat().st_size
    with file.open("ab") as data:
        data.write(b"x")
    result = run("metadata", "validate", path, "--validate-all-file-groups")
    assert result.exit_code == 4
    finding, summary = result.stdout.splitlines()
    assert finding == (
        f"files: {file.name} of partition 'a': the metadata table says {size} bytes, "
        f"it is {size + 1} bytes"
    )
    assert summary.startswith("The metadata table has 1 differences; compared: files")
    found = document("validate", path, "--validate-all-file-groups", code=4)
    difference = {
        "partition": "files",
        "subject": f"{file.name} of partition 'a'",
        "expected": f"{size + 1} bytes",
        "listed": f"{size} bytes",
    }
    assert [found.pop(name) for name in ("valid", "findings")] == [False, [difference]]
    assert found == {"checked": {"files": 2}, "skipped": {}, "unreadable": {}}
    # the footer is not where it was
    whole = document("validate", path, code=4)
    assert {*whole["unreadable"]} == {"column_stats", "partition_stats"}
    assert file.name in whole["unreadable"]["column_stats"]
    assert whole["findings"] == [difference]
    alone = run("metadata", "validate", path, "--validate-partition-stats")
    assert alone.exit_code == 4
    assert alone.stdout.startswith("partition_stats could not be compared: A data file ")
    only_b = document("validate", path, "--validate-all-file-groups", "--partition", "b/")
    assert only_b["valid"]


def test_places_of_keys(path: Path) -> None:
    run("metadata", "create", path)
    asked = ("lookup-record-index", path, "--record-key", "a-1", "--record-key", "none")
    assert "hudi metadata index PATH record_index" in refused(*asked)
    run("metadata", "index", path, "record_index")
    found, missing = document(*asked)["locations"]
    file = next(path.glob("a/*.parquet")).name
    assert (found["record_key"], found["partition"]) == ("a-1", "a")
    assert file.startswith(f"{found['file_group']}_")
    assert file.endswith(f"_{found['instant']}.parquet")
    assert missing == {"record_key": "none", "partition": None, "file_group": None, "instant": None}
    assert told(*asked)[-1] == "1 of 2 keys found"


def test_what_cannot_be_done_is_said(path: Path) -> None:
    missing = f"There is no metadata table at {path}/.hoodie/metadata"
    for command in (("init",), ("init", "--readonly"), ("delete",), ("validate",)):
        assert missing in refused(command[0], path, *command[1:])
    assert "readers look for it" in refused("set", path, "--metadataDir", "/elsewhere")
    run("metadata", "create", path)
    assert "already" in refused("create", path)
    assert refused("drop", path, "files")
    assert refused("index", path, "no_such")
    assert refused("validate", path.parent)
