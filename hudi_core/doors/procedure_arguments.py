"""Arguments of Hudi's SQL procedures, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hudi_core.errors import InvalidOptionError

SCHEDULE: Final = "schedule"
"""Make a plan."""
EXECUTE: Final = "execute"
"""Carry out plans that there are."""
_BOTH: Final = "scheduleandexecute"


def clustering_operation(
    op: str | None, instants: str | None, plan: Mapping[str, str | None]
) -> str:
    """What ``run_clustering`` is to do."""
    named = instants is not None
    operation = (EXECUTE if named else _BOTH) if op is None else op.lower()
    if operation not in (SCHEDULE, EXECUTE, _BOTH):
        raise InvalidOptionError(
            "op",
            op,
            "there is no such operation",
            f"Use one of {SCHEDULE}, {EXECUTE}, {_BOTH}.",
        )
    if named and operation != EXECUTE:
        raise InvalidOptionError(
            "instants", instants, f"{op} makes a plan of its own", f"Use {EXECUTE}, or no op."
        )
    if instants is not None and not all(listed(instants)):
        raise InvalidOptionError("instants", instants, "it names none", "Separate by commas.")
    for name, value in plan.items():
        if value is not None and operation == EXECUTE:
            raise InvalidOptionError(
                name, value, "a scheduled clustering has its plan", f"Give it to {SCHEDULE}."
            )
    return operation


def listed(text: str) -> list[str]:
    """Parts of a string that commas separate."""
    return [part.strip() for part in text.split(",")]


def options_of(given: Mapping[str, Any], more: str | None) -> dict[str, str]:
    """Options of arguments that were given, and of Hudi's text ``key=value,key=value``."""
    found = {key: str(value) for key, value in given.items() if value is not None}
    for part in filter(None, (part.strip() for part in (more or "").split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidOptionError("options", part, "it is no key=value", "Separate by commas.")
        found[key.strip()] = value.strip()
    return found
