"""`hudi timeline`: what happened to a table, and when."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hudi_core.cli import library
from hudi_core.cli.arguments import JsonOption, OptionsOption, PathArgument, parse_options
from hudi_core.cli.output import Grid, answer

if TYPE_CHECKING:
    from hudi_core.model.instant import Instant


def timeline(
    path: PathArgument,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show archived instants too, the oldest first.")
    ] = False,
    option: OptionsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the instants of a table by requested time."""
    options = parse_options(option)
    table = library.Table.open(path, options)
    active = table.timeline.instants
    archived = _archived(path, options, active) if show_all else ()
    instants = [
        *(instant_document(instant, archived=True) for instant in archived),
        *(instant_document(instant, archived=False) for instant in active),
    ]
    zone = str(table.config.zone)
    rows = [_row(instant, "archived") for instant in archived] + [_row(one) for one in active]
    count = f"{len(rows)} instant{'' if len(rows) == 1 else 's'}"
    answer(
        as_json,
        {"path": table.path, "zone": zone, "instants": instants},
        [
            Grid(
                ["instant", "action", "state", "completed"],
                rows,
                f"{table.config.name}: {count}, times in {zone}",
            )
        ],
    )


def instant_document(instant: Instant, *, archived: bool) -> dict[str, Any]:
    """Return an instant as the JSON of every command shows it."""
    return {
        "instant": instant.requested_time,
        "action": instant.action.value,
        "state": instant.state.value,
        "completion_time": instant.completion_time,
        "archived": archived,
    }


def _archived(
    path: str, options: Mapping[str, str], active: Sequence[Instant]
) -> Sequence[Instant]:
    """Return archived instants that are no longer on the active timeline."""
    shown = {library.instant_key(instant) for instant in active}
    found = (one.instant for one in library.open_table(path, options).client.archived.load())
    return [instant for instant in found if library.instant_key(instant) not in shown]


def _row(instant: Instant, state: str | None = None) -> Sequence[str]:
    return (
        instant.requested_time,
        instant.action.value,
        state or instant.state.value,
        instant.completion_time or "",
    )
