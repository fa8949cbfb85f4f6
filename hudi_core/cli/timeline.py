"""`hudi timeline`: what happened to a table, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer

from hudi_core.cli import library
from hudi_core.cli.document import document_of
from hudi_core.cli.output import Grid, Part
from hudi_core.cli.service import Call, counted, option, service, switch

if TYPE_CHECKING:
    from hudi_core.services.history import InstantStates
    from hudi_core.table_handle import OpenTable


def _states(table: OpenTable, call: Call) -> Mapping[str, Any]:
    found = library.timeline_states(table, archived=call.given["archived"])
    # a format without metadata of its own has nothing to say of an instant
    keys = "*" if library.is_two_step(table) else "*instant archived=is_archived"
    if call.given["html"] is not None:
        _write_page(call.given["html"], table, found)
    instants = [document_of(one, keys=keys) for one in found]
    return {"found": found, "zone": str(table.client.config.zone), "instants": instants}


@service(
    switch("--all", "Show archived instants too, the oldest first.", "archived"),
    option(
        "--html",
        "Write a page with what each instant did, to be looked at in a browser.",
        Path | None,
        metavar="FILE",
    ),
    does=lambda call: library.open_table(call.path, call.options),
    keys="path=client.base_path format=host.name zone=@zone instants=@instants",
    facts=_states,
    examples="hudi timeline trips\n"
    "hudi timeline trips --all --json\n"
    "hudi timeline trips --html trips.html",
)
def timeline(table: OpenTable, call: Call) -> Iterator[Part]:
    """Show the instants of a table by requested time.

    Where the table's format has metadata of its own: whether that has each of them too, and what
    readers see.
    """
    found, name = call.given["found"], table.host.name
    if library.is_two_step(table):
        headings = ["instant", "action", "state", f"in {name}", "seen as", "completed"]
        rows = [_wide_row(one) for one in found]
    else:
        headings = ["instant", "action", "state", "completed"]
        rows = [_row(one) for one in found]
    count = counted(len(found), "instant")
    title = f"{table.client.config.name}: {count}, times in {call.given['zone']}"
    yield Grid(headings, rows, title)
    for one in found:
        if one.explanation is not None:
            yield one.explanation


def _write_page(file: Path, table: OpenTable, found: Sequence[InstantStates]) -> None:
    """Write a page; its folder has to be there."""
    config, client = table.client.config, table.client
    facts = {
        "name": config.name,
        "path": client.base_path,
        "format": table.host.name,
        "zone": str(config.zone),
    }
    done = {
        (row["instant"], row["action"]): row for row in library.table_history(table).to_pylist()
    }
    rows = [
        _page_row(done[one.instant.requested_time, one.instant.action.value], one)
        for one in reversed(found)
    ]
    try:
        file.write_text(timeline_page(facts, rows), encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="'--html'") from error


def _page_row(row: Mapping[str, Any], state: InstantStates) -> Mapping[str, Any]:
    begun = library.to_epoch_millis(state.instant.requested_time) / 1000
    completed, seconds = state.instant.completion_time, None
    # a savepoint has the requested time of the commit that it keeps
    if completed is not None and row["action"] != "savepoint":
        seconds = library.to_epoch_millis(completed) / 1000 - begun
    return {
        **row,
        **document_of(state, keys="*"),
        # an archived instant is not on the active timeline, whatever the history says of its state
        "state": state.instant.state.value,
        "at": begun,
        "seconds": seconds,
    }


def _wide_row(one: InstantStates) -> Sequence[str]:
    *known, completed = _row(one)
    in_format = one.version or (None if one.in_format is None else one.in_format.value)
    return (*known, in_format or "-", one.seen.state.value, completed)


def _row(one: InstantStates) -> Sequence[str]:
    instant = one.instant
    return (
        instant.requested_time,
        instant.action.value,
        "archived" if one.is_archived else instant.state.value,
        instant.completion_time or "",
    )


# --- a table's timeline as one page of HTML -------------------------------------------------------
# Styles and drawings are within the page, it runs no script and loads nothing, and every text from
# the table is escaped: names of tables, operations and versions come from anyone who can write the
# bucket.


_COLOURS: Final = {
    "commit": "#2a7f4f",
    "deltacommit": "#2a7f4f",
    "replacecommit": "#2f6db3",
    "clustering": "#2f6db3",
    "clean": "#8a6d1d",
    "savepoint": "#7b4fa3",
    "rollback": "#b3402f",
    "restore": "#b3402f",
}
_OTHER: Final = "#5b6b7a"
_BAR: Final = 70
_STRIP: Final = (960, 54)
_STYLE: Final = """
:root { color-scheme: light dark; --line: #d5dbe1; --dim: #667; --back: #fff; --text: #182430; }
@media (prefers-color-scheme: dark) {
  :root { --line: #37424d; --dim: #9aa7b4; --back: #141a20; --text: #dfe7ee; }
}
body { font: 14px/1.45 system-ui, sans-serif; margin: 2rem; background: var(--back);
  color: var(--text); }
h1 { font-size: 1.3rem; margin: 0; }
p { color: var(--dim); margin: .3rem 0 1rem; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: .25rem .7rem .25rem 0; border-bottom: 1px solid var(--line);
  white-space: nowrap; vertical-align: middle; }
th { font-weight: 600; position: sticky; top: 0; background: var(--back); }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
tr.note td { white-space: normal; color: #b3402f; }
code { font-family: ui-monospace, monospace; }
.action { color: #fff; border-radius: 4px; padding: .05rem .45rem; }
.pending { border-bottom: 2px dashed #b3402f; }
svg { display: block; overflow: visible; }
"""


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A column of the page.

    ``cell`` returns HTML; ``is_number`` sets it to the right.
    """

    title: str
    cell: Callable[[Mapping[str, Any]], str]
    is_number: bool = False


def timeline_page(document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """The page of a timeline.

    ``document`` has ``name``, ``path``, ``format`` and ``zone``. ``rows`` are instants, the newest
    first: the columns of a table's history, ``seconds`` (from request to completion), ``at`` (the
    request, in seconds since the epoch), and ``format_version``, ``seen_as`` and ``explanation``
    where there are any.
    """
    columns = _columns(document, rows)
    title = f"Timeline of {document['name']}"
    facts = (
        f"{document['path']} · format {document['format']} · {len(rows)} instants, "
        f"times in {document['zone']}"
    )
    heads = "".join(f"<th>{escape(one.title)}</th>" for one in columns)
    body = "\n".join(_html_row(row, columns) for row in rows)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n<p>{escape(facts)}</p>\n{_strip(rows)}\n"
        f"<table><thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody></table>\n"
        "</body></html>\n"
    )


def _columns(
    document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> tuple[PageColumn, ...]:
    longest = max((row["seconds"] or 0.0 for row in rows), default=0.0)
    largest = max((row["bytes_written"] or 0 for row in rows), default=0)
    two_step = any(row.get("format_state") for row in rows)
    states = (
        (
            PageColumn(f"in {document['format']}", _in_format),
            PageColumn("seen as", lambda row: escape(row["seen_as"])),
        )
        if two_step
        else ()
    )
    return (
        PageColumn("instant", lambda row: f"<code>{escape(row['instant'])}</code>"),
        PageColumn("action", _action),
        PageColumn("operation", lambda row: escape((row["operation"] or "").lower())),
        PageColumn("state", lambda row: "archived" if row["archived"] else escape(row["state"])),
        *states,
        PageColumn("seconds", lambda row: _seconds(row["seconds"]), is_number=True),
        PageColumn("", lambda row: _bar(row["seconds"], longest, _seconds(row["seconds"]) + " s")),
        PageColumn("rows +", lambda row: _count(row["rows_inserted"]), is_number=True),
        PageColumn("rows ~", lambda row: _count(row["rows_updated"]), is_number=True),
        PageColumn("rows −", lambda row: _count(row["rows_deleted"]), is_number=True),
        PageColumn("files +", lambda row: _count(row["files_added"]), is_number=True),
        PageColumn("files −", lambda row: _count(row["files_removed"]), is_number=True),
        PageColumn("bytes", lambda row: _count(row["bytes_written"]), is_number=True),
        PageColumn(
            "", lambda row: _bar(row["bytes_written"], largest, _count(row["bytes_written"]))
        ),
    )


def _html_row(row: Mapping[str, Any], columns: Sequence[PageColumn]) -> str:
    cells = "".join(
        f'<td class="number">{one.cell(row)}</td>' if one.is_number else f"<td>{one.cell(row)}</td>"
        for one in columns
    )
    note = row.get("explanation")
    below = (
        f'\n<tr class="note"><td colspan="{len(columns)}">{escape(note)}</td></tr>' if note else ""
    )
    return f"<tr>{cells}</tr>{below}"


def _action(row: Mapping[str, Any]) -> str:
    colour = _COLOURS.get(row["action"], _OTHER)
    pending = "" if row["completion_time"] else " pending"
    return (
        f'<span class="action{pending}" style="background:{colour}">{escape(row["action"])}</span>'
    )


def _in_format(row: Mapping[str, Any]) -> str:
    return escape(str(row.get("format_version") or row.get("format_state") or "-"))


def _strip(rows: Sequence[Mapping[str, Any]]) -> str:
    """When the instants were requested: a line with a mark for each."""
    width, height = _STRIP
    times = [row["at"] for row in rows]
    if len(times) < 2:
        return ""
    first, span = min(times), (max(times) - min(times)) or 1.0
    marks = "".join(
        f'<circle cx="{8 + (width - 16) * (row["at"] - first) / span:.1f}" cy="20" r="5" '
        f'fill="{_COLOURS.get(row["action"], _OTHER)}" fill-opacity="0.75">'
        f"<title>{escape(row['instant'])} {escape(row['action'])}</title></circle>"
        for row in rows
    )
    ends = "".join(
        f'<text x="{x}" y="46" text-anchor="{anchor}" font-size="11" fill="currentColor">'
        f"{escape(row['instant'])}</text>"
        for x, anchor, row in ((0, "start", rows[-1]), (width, "end", rows[0]))
    )
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="when the instants were requested">'
        f'<line x1="8" y1="20" x2="{width - 8}" y2="20" stroke="currentColor" '
        f'stroke-opacity="0.3"/>{marks}{ends}</svg>'
    )


def _bar(value: float | None, greatest: float, text: str) -> str:
    """A bar as long as the root of a value."""
    # small values are seen beside large ones
    if not value or not greatest:
        return ""
    width = max(1.0, _BAR * sqrt(value / greatest))
    return (
        f'<svg width="{_BAR}" height="10" role="img" aria-label="{escape(text)}">'
        f'<rect width="{width:.1f}" height="10" rx="2" fill="#5f8fb8"/></svg>'
    )


def _count(value: int | None) -> str:
    return f"{value:,}".replace(",", "\u202f") if value else ""


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
