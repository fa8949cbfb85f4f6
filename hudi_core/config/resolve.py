"""A user's options against what the table has stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.option_warnings import warn_of_options
from hudi_core.config.options import GivenOptions, Secret
from hudi_core.config.placement import Placement
from hudi_core.config.stored_table import checked_against, new_table_config
from hudi_core.config.table import TableConfig
from hudi_core.errors import InvalidOptionError


def given_options(options: Any) -> Mapping[str, object]:
    """Options as a caller gave them; none for ``None``."""
    if options is None:
        return {}
    if not isinstance(options, Mapping):
        kind = type(options).__qualname__
        raise InvalidOptionError(
            "options", kind, "options are values by name", 'Pass a dict: {"hoodie...": "..."}.'
        )
    for name in options:
        if not isinstance(name, str):
            raise InvalidOptionError(
                repr(name), options[name], "the name of an option is a string", "Pass its name."
            )
    return options


def options_as_strings(options: Mapping[str, object] | None) -> GivenOptions:
    """Return options as text, as Spark and Hudi spell them.

    Truth values become ``true`` and ``false``, numbers their digits, lists of names are joined with
    commas, and options whose value is ``None`` are left out.
    """
    strings = GivenOptions()
    for name, value in given_options(options).items():
        match value:
            case None:
                continue
            case bool():
                strings[name] = "true" if value else "false"
            case str() | int() | float():
                strings[name] = str(value)
            case Secret():
                strings[name] = value.reveal()
            case list() | tuple() if all(isinstance(part, str) for part in value):
                strings[name] = ",".join(value)
            case _:
                raise InvalidOptionError(
                    name,
                    type(value).__name__,
                    "an option is a string, a number, a boolean or a list of names",
                    "Pass a string.",
                )
    return strings


def resolve_table_config(options: Mapping[str, str], stored: TableConfig | None) -> TableConfig:
    """Configuration of a table: as stored, or new by its options.

    Options without effect are warned of.
    """
    warn_of_options(options, () if stored is None else stored.raw)
    made = new_table_config(options) if stored is None else checked_against(options, stored)
    require_metadata_table(options, made.placement)
    return made


def require_metadata_table(options: Mapping[str, str], placement: Placement) -> None:
    """Refuse options without which the files of a table are unknown."""
    if not placement.is_default and MetadataConfig.from_options(options).is_refused:
        raise MetadataConfig.enabled.refused(
            "false",
            "the table's data files lie below storage paths, and only its metadata table lists "
            "them",
            "Drop the option.",
        )


def resolve_again(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    """Configuration of an open table whose properties have changed.

    Nothing is warned of.
    """
    return checked_against(options, stored)
