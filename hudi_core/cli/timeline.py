"""`hudi timeline`: what happened to a table, and when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from hudi_core.cli import library
from hudi_core.cli.document import document_of
from hudi_core.cli.output import Grid, Part
from hudi_core.cli.service import Call, counted, option, service, switch
from hudi_core.cli.timeline_page import timeline_page

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
