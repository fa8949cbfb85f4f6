"""Suites of formats that distributions register, by name.

An entry point of the group ``hudi.conformance`` names a class that derives from one of the suites;
its name is the format's.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Final

from hudi_conformance.formats.tables import OverFormat
from hudi_core.spi import HudiError

GROUP: Final = "hudi.conformance"


class SuiteNotFoundError(HudiError):
    """No suite, or none that can be used, is registered for a format."""


def registered() -> dict[str, EntryPoint]:
    """The entry points by the names of formats, sorted; imports nothing."""
    return {one.name: one for one in sorted(entry_points(group=GROUP), key=lambda one: one.name)}


def suite_of(name: str) -> type[OverFormat]:
    """The suite of a format.

    Raises
    ------
    SuiteNotFoundError
        There is none of that name, it cannot be imported, or it is no suite.
    """
    known = registered()
    if name not in known:
        raise SuiteNotFoundError(
            f"No package registers a conformance suite for the format {name!r}",
            f"Registered are: {', '.join(known) or 'none'}. Add an entry point of that name to the "
            f"group {GROUP}, for a class that derives from TableFormatSuite or TwoStepFormatSuite.",
        )
    target = known[name].value
    try:
        found = known[name].load()
    except (ImportError, AttributeError) as error:
        raise SuiteNotFoundError(
            f"The conformance suite {target} of the format {name!r} cannot be imported: {error}",
            "Install what it needs.",
        ) from error
    if not (isinstance(found, type) and issubclass(found, OverFormat)):
        raise SuiteNotFoundError(
            f"{target}, registered for the format {name!r}, is no conformance suite",
            "Derive a class from TableFormatSuite or TwoStepFormatSuite.",
        )
    return found
