"""The options that a format declares, and the user's values.

A format that declares nothing, by leaving ``get_options`` out, is given its options unseen.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hudi_core.config.format_option import LOCATION, NAME, FormatOption, option_key
from hudi_core.config.option_warnings import warn_once
from hudi_core.config.options import is_secret_name
from hudi_core.extension.guard import Guard

_NEAR: Final = 0.8
"""How like a name must be to one that is declared to be taken for it, as difflib counts."""


def checked_options(
    guard: Guard, declared: Sequence[FormatOption[Any]]
) -> tuple[FormatOption[Any], ...]:
    """The declarations of a format, once they have been checked."""
    options = guard.call("get_options", lambda: tuple(declared))
    names: set[str] = set()
    for one in options:
        guard.require("get_options", one, (FormatOption,), "a sequence of FormatOption")
        if not NAME.fullmatch(one.name):
            guard.raise_violation(
                f"get_options declares {one.name!r}, which is no name of an option"
            )
        if one.name in names:
            guard.raise_violation(f"get_options declares {one.name!r} twice")
        if one.is_stored and (one.is_prefix or is_secret_name(one.name)):
            guard.raise_violation(f"get_options declares {one.name!r} as stored, which cannot be")
        names.add(one.name)
    return options


def given_options(name: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of a format among a user's, without their prefix."""
    prefix = option_key(name, "")
    return {
        key.removeprefix(prefix): text for key, text in options.items() if key.startswith(prefix)
    }


def check_options(
    name: str, declared: Sequence[FormatOption[Any]], given: Mapping[str, str]
) -> None:
    """Refuse values that cannot be used; warn once of unknown names.

    Of those below a declared prefix only one is warned of that is nearly a declared name: which
    there are is not for the format to say.
    """
    known = {one.name: one for one in declared if not one.is_prefix}
    prefixes = [one.name for one in declared if one.is_prefix]
    for option, text in given.items():
        key = option_key(name, option)
        if option in known:
            known[option].value(key, text)
        elif option != LOCATION:
            below = next((prefix for prefix in prefixes if option.startswith(prefix)), "")
            near = _nearest(option, below, known)
            if near is not None or not below:
                meant = f"; did you mean {option_key(name, near)}?" if near else "."
                effect = "" if below else " and has no effect"
                warn_once(
                    (key,), f"{key} is not a known option of the {name} format{effect}{meant}"
                )


def stored_options(
    name: str, declared: Sequence[FormatOption[Any]], given: Mapping[str, str]
) -> dict[str, str]:
    """The properties by which a new table keeps a format's options."""
    kept = (one.name for one in declared if one.is_stored)
    return {option_key(name, option): given[option].strip() for option in kept if option in given}


def _nearest(option: str, below: str, known: Mapping[str, object]) -> str | None:
    # the prefix that both have would make them alike
    names = [one.removeprefix(below) for one in (*known, LOCATION) if one.startswith(below)]
    found = difflib.get_close_matches(option.removeprefix(below), names, n=1, cutoff=_NEAR)
    return f"{below}{found[0]}" if found else None
