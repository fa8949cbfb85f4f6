"""`hudi timeline --html`: a page that shows what happened, and takes nobody's word for markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.cli.timeline_page import timeline_page

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


def shown(path: Path, *more: str) -> list[dict[str, str]]:
    """The rows of a table's page, by heading."""
    file = path.parent / "page.html"
    result = CliRunner().invoke(app, ["timeline", str(path), "--html", str(file), *more])
    assert result.exit_code == 0, result.output
    page = Structure(file.read_text(encoding="utf-8"))
    assert page.outside == []
    headings, *rows = page.rows
    return [dict(zip(headings, row, strict=False)) for row in rows]


@pytest.mark.parametrize("table_format", ["native", "iceberg", "delta"])
def test_each_instant_has_a_row(tmp_path: Path, table_format: str) -> None:
    path = tmp_path / "trips"
    table = hudi.Table.create(str(path), ROWS, record_key="id", format=table_format)
    table.insert(ROWS)
    table.upsert(ROWS)
    deleted = table.delete(ROWS.slice(1))
    table.rollback(deleted.instant)
    rows = shown(path)
    instants = sorted(table.timeline.instants, key=lambda one: one.requested_time, reverse=True)
    assert [(row["instant"], row["action"]) for row in rows] == [
        (one.requested_time, one.action.value) for one in instants
    ]
    first = rows[-1]
    assert (first["operation"], first["rows +"], first["files +"]) == ("insert", "2", "1")
    assert float(first["seconds"]) > 0
    assert (f"in {table_format}" in first) == (table_format != "native")


def test_a_pending_publication_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trips"
    table = hudi.Table.create(str(path), ROWS, record_key="id", format="delta")
    table.insert(ROWS)

    def die(*_arguments: object, **_named: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("hudi_core.plugin.host.FormatHost.complete_write", die)
        with pytest.raises(KeyboardInterrupt):
            table.upsert(ROWS)
    [note, row] = shown(path)[1::-1]
    assert (row["in delta"], row["seen as"]) == ("absent", "inflight")
    assert "publish" in note["instant"]


def test_archived_instants_come_on_demand(tmp_path: Path) -> None:
    path = tmp_path / "trips"
    limits = {"hoodie.keep.min.commits": "2", "hoodie.keep.max.commits": "3"}
    limits["hoodie.cleaner.commits.retained"] = "1"
    table = hudi.Table.create(str(path), ROWS, record_key="id", options=limits)
    for _ in range(6):
        table.upsert(ROWS)
    active, every = shown(path), shown(path, "--all")
    assert len(every) > len(active)
    assert {row["state"] for row in every} == {"completed", "archived"}


def test_texts_of_the_table_are_escaped() -> None:
    evil = '<script>alert(1)</script>"&'
    row = (
        {
            "instant": evil,
            "action": evil,
            "operation": evil,
            "state": evil,
            "completion_time": None,
            "archived": False,
            "at": 1.0,
            "seconds": None,
            "format_state": evil,
            "format_version": evil,
            "seen_as": evil,
            "explanation": evil,
        }
        | dict.fromkeys(
            ("rows_inserted", "rows_updated", "rows_deleted", "files_added", "files_removed"), 1
        )
        | {"bytes_written": 1}
    )
    facts = {"name": evil, "path": evil, "format": evil, "zone": evil}
    text = timeline_page(facts, [row, {**row, "at": 2.0}])
    page = Structure(text)
    assert page.outside == []
    assert evil.lower() in page.rows[1][2]
    assert not re.search(r"<script", text)
    assert "default-src 'none'" in text


def test_a_file_that_cannot_be_written_is_a_wrong_usage(tmp_path: Path) -> None:
    path = tmp_path / "trips"
    hudi.Table.create(str(path), ROWS, record_key="id")
    result = CliRunner().invoke(app, ["timeline", str(path), "--html", str(tmp_path / "no" / "x")])
    assert result.exit_code == 2
    assert "--html" in result.output
