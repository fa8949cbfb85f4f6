"""`hudi metadata`, and what tables hold as text on terminals."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.cli.terminal import visible, write_error, write_facts, write_grid, write_json
from hudi_core.cli.timeline import timeline_page
from tests.cli_runs import run, run_json
from tests.tables import FORMATS, copied, new_table, rows

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
    without = {"hoodie.metadata.enable": "false"}
    copied(tmp_path / "trips", new_table, some, without, name="trips")
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


# --- what a table holds reaches the terminal and pages as text, and nothing else
HOSTILE = {
    "clear the screen": "\x1b[2J",
    "rename the window": "\x1b]0;owned\x07",
    "one-byte control sequence": "\x9b31m",
    "overwrite the line": "paid\runpaid",
    "add a line": "a\nerror: b",
    "turn the direction round": "gpj\u202efdp.exe",
    "invisible": "ro\u200bme",
    "line separator": "a\u2028b",
    "lone surrogate": "\ud800",
    "delete": "\x7f",
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_characters_are_escaped(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_grid(text, ["name"], [[text]])
    write_facts([(text, text)])
    write_error(text)

    captured = capsys.readouterr()
    for written in (captured.out, captured.err):
        assert visible(text) in written
        assert all(char.isprintable() for char in written.replace("\n", ""))
    assert "\\" in visible(text)
    assert captured.err.count("\n") == 1


def test_ordinary_text_of_any_script_stays() -> None:
    for text in ("Łódź", "東京", "São Paulo", "наш", "a\\b", "100 €"):
        assert visible(text) == text


def test_markup_of_rich_is_text(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[bold red]x[/] [link=http://a.b]y[/link] :smile: [/nothing]"

    write_grid(text, [text], [[text]])
    write_facts([(text, text)])
    write_error(text)

    captured = capsys.readouterr()
    assert captured.out.count(text) == 5
    assert captured.err == f"error: {text}\n"


@pytest.mark.parametrize(("columns", "width"), [(None, 120), ("70", 70), ("x", 120), ("0", 120)])
def test_a_pipe_gets_whole_values_in_lines_of_some_width(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: str | None,
    width: int,
) -> None:
    if columns is None:
        monkeypatch.delenv("COLUMNS", raising=False)
    else:
        monkeypatch.setenv("COLUMNS", columns)
    time, long = "20260131120000000", "".join(f"{n:03}" for n in range(200))

    write_grid("", ["a", "b"], [[time, long]])

    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    words = "".join(lines).replace("─", "").split()
    assert words[:3] == ["a", "b", time]
    assert "".join(words[3:]) == long


def test_columns_of_long_values_give_way_before_short_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    name, path = "hoodie.table.version", "p" * 55

    write_grid("", ["property", "of", "at"], [[name, path, path[:50]]])

    shown = capsys.readouterr().out
    assert name in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_columns_under_headings_of_two_words_stay_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    time, group = "20260131120000000", "8322e70d-11ca-4c7f-9d2e-0ff3ca649f34"

    write_grid("", ["base bytes", "file group", "log bytes"], [["1", group, time]])

    shown = capsys.readouterr().out
    assert all(one in shown for one in ("base bytes", "log bytes", time))
    assert max(map(len, shown.splitlines())) <= 60


def test_numbers_are_aligned_to_the_right(capsys: pytest.CaptureFixture[str]) -> None:
    write_grid("", ["count", "name"], [["1", "a"], ["1,000", "bb"]])

    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert any(line.endswith("    1   a") for line in lines)
    assert any(line.endswith("1,000   bb") for line in lines)


def test_json_is_ascii_and_exact(capsys: pytest.CaptureFixture[str]) -> None:
    document = {"a": list(HOSTILE.values()), "b": None, "c": 2**60}

    write_json(document)

    written = capsys.readouterr().out
    assert written.isascii()
    assert all(char.isprintable() for char in written.replace("\n", ""))
    assert json.loads(written) == document


ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "fare": [12.5, 9.0]})
EMPTY = {"br", "meta", "line", "circle", "rect"}


class Structure(HTMLParser):
    """Cells of the page by row, and what is loaded or run."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.notes: list[str] = []
        self.outside: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        self.outside += [tag] if tag in {"script", "link", "img", "iframe", "object"} else []
        self.outside += [name for name in names if name.startswith("on") or name in {"src", "href"}]
        if tag not in EMPTY:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        if tag not in EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def shown(path: str, *more: str) -> list[dict[str, str]]:
    """The rows of a table's page, by heading."""
    file = Path(path).parent / "page.html"
    result = run("timeline", path, "--html", file, *more)
    assert result.exit_code == 0, result.output
    page = Structure(file.read_text(encoding="utf-8"))
    assert page.outside == []
    headings, *rows = page.rows
    return [dict(zip(headings, row, strict=False)) for row in rows]


@pytest.mark.parametrize("table_format", FORMATS)
def test_each_instant_has_a_row(tmp_path: Path, table_format: str) -> None:
    table = new_table(tmp_path / "trips", ROWS, format=table_format)
    table.upsert(ROWS)
    deleted = table.delete(ROWS.slice(1))
    table.rollback(deleted.instant)
    rows = shown(table.path)
    instants = sorted(table.timeline.instants, key=lambda one: one.requested_time, reverse=True)
    assert [(row["instant"], row["action"]) for row in rows] == [
        (one.requested_time, one.action.value) for one in instants
    ]
    first = rows[-1]
    assert (first["operation"], first["rows +"], first["files +"]) == ("insert", "2", "1")
    assert float(first["seconds"]) > 0
    assert (f"in {table_format}" in first) == (table_format != "native")


def test_pending_publications_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = new_table(tmp_path / "trips", ROWS, format="delta")

    def die(*_arguments: object, **_named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("hudi_core.plugin.host.FormatHost.complete_write", die)
        with pytest.raises(KeyboardInterrupt):
            table.upsert(ROWS)
    [note, row] = shown(table.path)[1::-1]
    assert (row["in delta"], row["seen as"]) == ("absent", "inflight")
    assert "publish" in note["instant"]


def test_archived_instants_come_on_demand(tmp_path: Path) -> None:
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    limits["hoodie.cleaner.commits.retained"] = "1"
    table = new_table(tmp_path / "trips", ROWS.schema, limits)
    for _ in range(6):
        table.upsert(ROWS)
    active, every = shown(table.path), shown(table.path, "--all")
    assert len(every) > len(active)
    assert {row["state"] for row in every} == {"completed", "archived"}


def test_texts_of_the_table_are_escaped() -> None:
    evil = '<script>alert(1)</script>"&'
    texts = ["instant", "action", "operation", "state"]
    texts += ["format_state", "format_version", "seen_as", "explanation"]
    counts = ["rows_inserted", "rows_updated", "rows_deleted", "files_added", "files_removed"]
    row: dict[str, Any] = dict.fromkeys(texts, evil) | dict.fromkeys([*counts, "bytes_written"], 1)
    row |= {"completion_time": None, "archived": False, "at": 1.0, "seconds": None}
    facts = dict.fromkeys(("name", "path", "format", "zone"), evil)
    text = timeline_page(facts, [row, {**row, "at": 2.0}])
    page = Structure(text)
    assert page.outside == []
    assert evil.lower() in page.rows[1][2]
    assert not re.search(r"<script", text)
    assert "default-src 'none'" in text


def test_a_file_that_cannot_be_written_is_a_wrong_usage(tmp_path: Path) -> None:
    table = new_table(tmp_path / "trips", ROWS.schema)
    result = run("timeline", table.path, "--html", tmp_path / "no" / "x")
    assert result.exit_code == 2
    assert "--html" in result.output
