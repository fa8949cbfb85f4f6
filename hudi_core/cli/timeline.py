"""`hudi timeline`: what happened to a table, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import JsonOption, OptionsOption, PathArgument, parse_options
from hudi_core.cli.output import Grid, Part, answer
from hudi_core.cli.timeline_page import timeline_page

if TYPE_CHECKING:
    from hudi_core.model.instant import Instant
    from hudi_core.services.timeline_states import InstantStates
    from hudi_core.table_handle import OpenTable


def timeline(
    path: PathArgument,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show archived instants too, the oldest first.")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(
            "--html",
            metavar="FILE",
            help="Write a page with what each instant did, to be looked at in a browser.",
        ),
    ] = None,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the instants of a table by requested time.

    Where the table's format has metadata of its own: whether that has each of them too, and what
    readers see.
    """
    table = library.open_table(path, parse_options(option))
    found = library.timeline_states(table, archived=show_all)
    config, base_path, name = table.client.config, table.client.base_path, table.host.name
    zone = str(config.zone)
    count = f"{len(found)} instant{'' if len(found) == 1 else 's'}"
    title = f"{config.name}: {count}, times in {zone}"
    if library.is_two_step(table):
        instants = [_document(one) for one in found]
        headings = ["instant", "action", "state", f"in {name}", "seen as", "completed"]
        rows = [_wide_row(one) for one in found]
    else:
        instants = [instant_document(one.instant, archived=one.is_archived) for one in found]
        headings = ["instant", "action", "state", "completed"]
        rows = [_row(one) for one in found]
    if html is not None:
        _write_page(html, table, found)
    parts: list[Part] = [Grid(headings, rows, title)]
    parts += [one.explanation for one in found if one.explanation is not None]
    answer(as_json, {"path": base_path, "format": name, "zone": zone, "instants": instants}, parts)


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
        **_document(state),
        # an archived instant is not on the active timeline, whatever the history says of its state
        "state": state.instant.state.value,
        "at": begun,
        "seconds": seconds,
    }


def instant_document(instant: Instant, *, archived: bool) -> dict[str, Any]:
    """Return an instant as the JSON of every command shows it."""
    return {
        "instant": instant.requested_time,
        "action": instant.action.value,
        "state": instant.state.value,
        "completion_time": instant.completion_time,
        "archived": archived,
    }


def _document(one: InstantStates) -> dict[str, Any]:
    return {
        **instant_document(one.instant, archived=one.is_archived),
        "format_state": None if one.in_format is None else one.in_format.value,
        "format_version": one.version,
        "seen_as": one.seen.state.value,
        "explanation": one.explanation,
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
