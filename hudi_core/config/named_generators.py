"""Named key generators and record mergers, as tables keep them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from hudi_core.config.extension_points import (
    KEY_GENERATOR_POINT,
    RECORD_MERGER_POINT,
    KeyGeneratorTraits,
    kept_options,
)

PARTITIONS_PROPERTY: Final = "hoodie.table.partition.by.keygenerator"
"""Whether a named key generator makes the strings of partition fields."""
KEYGEN_CLASS_PROPERTY: Final = "hoodie.table.keygenerator.class"

Pairs = tuple[tuple[str, str], ...]
"""Options, in the order of their names."""


@dataclass(frozen=True, slots=True)
class NamedKeyGenerator:
    """The key generator of a table, where another distribution provides it.

    ``options`` are its own, which the table keeps; so they may hold no secret.
    """

    name: str
    makes_partitions: bool = False
    options: Pairs = ()

    @classmethod
    def chosen(cls, name: str, options: Mapping[str, str]) -> Self:
        """The key generator of a new table."""
        traits = KEY_GENERATOR_POINT.load(name, KeyGeneratorTraits)
        kept = kept_options(KEY_GENERATOR_POINT, name, options)
        return cls(name, traits.makes_partitions, tuple(sorted(kept.items())))

    @classmethod
    def stored(cls, name: str, properties: Mapping[str, str]) -> Self:
        """The key generator that a table's properties name."""
        kept = KEY_GENERATOR_POINT.options_of(name, properties)
        makes = properties.get(PARTITIONS_PROPERTY, "").strip().lower() == "true"
        return cls(name, makes, tuple(sorted(kept.items())))

    @property
    def properties(self) -> dict[str, str]:
        """The properties of a new table."""
        begin = f"{KEY_GENERATOR_POINT.options_prefix}{self.name}."
        made = {PARTITIONS_PROPERTY: "true"} if self.makes_partitions else {}
        own = {f"{begin}{key}": value for key, value in self.options}
        return {KEYGEN_CLASS_PROPERTY: self.name, **made, **own}


@dataclass(frozen=True, slots=True)
class NamedMerger:
    """The record merger of a table, which another distribution provides.

    ``options`` are its own, which the table keeps; so they may hold no secret.
    """

    name: str
    options: Pairs = ()

    @classmethod
    def chosen(cls, name: str, options: Mapping[str, str]) -> Self:
        """The merger of a new table."""
        RECORD_MERGER_POINT.require(name)
        kept = kept_options(RECORD_MERGER_POINT, name, options)
        return cls(name, tuple(sorted(kept.items())))

    @classmethod
    def stored(cls, name: str, properties: Mapping[str, str]) -> Self:
        """The merger that a table's properties name."""
        kept = RECORD_MERGER_POINT.options_of(name, properties)
        return cls(name, tuple(sorted(kept.items())))

    @property
    def prefix(self) -> str:
        """What the names of its own options begin with."""
        return f"{RECORD_MERGER_POINT.options_prefix}{self.name}."

    @property
    def properties(self) -> dict[str, str]:
        """Its own options as properties of a new table."""
        return {f"{self.prefix}{key}": value for key, value in self.options}


def stored_name(text: str | None) -> str | None:
    """Return the name of an extension that a property keeps.

    ``None`` for anything else, such as a Java class: only what this project stores is lower case
    throughout.
    """
    name = None if text is None else KEY_GENERATOR_POINT.find_name(text.strip())
    return name if name is not None and name == text else None
