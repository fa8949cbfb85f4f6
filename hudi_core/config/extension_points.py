"""The small extension points: what other distributions add by name.

What a member has to be is said by the room that calls it. Settings have to know a few traits of it
before anything runs; these are class attributes of the bases here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, Self, TypeVar

from hudi_core.config.key_generators import KEY_GENERATOR_CLASSES, KEY_GENERATORS
from hudi_core.config.kinds import CONFLICT_CLASSES, LOCK_CLASSES, IndexType, LockKind
from hudi_core.config.options import is_secret_name
from hudi_core.config.placement import STORAGE_POINT
from hudi_core.errors import InvalidOptionError
from hudi_core.extension.registry import ExtensionPoint
from hudi_core.model.format import Granularity

Kind = TypeVar("Kind", bound=StrEnum)

KEY_GENERATOR_POINT: Final = ExtensionPoint(
    "hudi.key_generators",
    "key generator",
    frozenset(kind.value.lower() for kind in KEY_GENERATORS),
    {name: kind.value.lower() for name, kind in KEY_GENERATOR_CLASSES.items()},
    options_prefix="hoodie.table.keygenerator.",
)
INDEX_POINT: Final = ExtensionPoint(
    "hudi.indexes", "index", frozenset(kind.value.lower() for kind in IndexType)
)
RECORD_MERGER_POINT: Final = ExtensionPoint(
    "hudi.record_mergers", "record merger", options_prefix="hoodie.record.merge.property."
)
LOCK_POINT: Final = ExtensionPoint(
    "hudi.lock_providers",
    "lock provider",
    frozenset(kind.value for kind in LockKind),
    {name: kind.value for name, kind in LOCK_CLASSES.items()},
    options_prefix="hoodie.write.lock.",
)
CONFLICT_POINT: Final = ExtensionPoint(
    "hudi.conflict_strategies",
    "conflict strategy",
    frozenset(kind.value for kind in Granularity),
    {name: kind.value for name, kind in CONFLICT_CLASSES.items()},
)

POINTS: Final = (
    KEY_GENERATOR_POINT,
    INDEX_POINT,
    RECORD_MERGER_POINT,
    LOCK_POINT,
    CONFLICT_POINT,
    STORAGE_POINT,
)


def load_extension(group: str, name: str) -> type[object]:
    """The class of an installed extension, by its entry-point group and name.

    Raises
    ------
    ValueError
        There is no such group of extensions, or the text can be no name in it.
    PluginError
        No distribution provides it, several do, or it cannot be imported.
    """
    for point in POINTS:
        if point.group == group:
            return point.load(point.name(name), object)
    raise ValueError(f"{group} is none of {', '.join(point.group for point in POINTS)}")


class KeyGeneratorTraits:
    """What settings know of a key generator.

    ``makes_partitions`` means that it makes the strings of partition fields, which are then no
    values of a column: no filter on a column rules a partition out by its path.
    """

    makes_partitions: ClassVar[bool] = False


class IndexTraits:
    """What settings know of an index.

    ``is_global`` means that it finds keys in all partitions, so that a key is unique in the whole
    table.
    """

    is_global: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class NamedIndex:
    """An index of another distribution; used where an ``IndexType`` may be."""

    value: str
    is_global: bool

    @property
    def is_record_index(self) -> bool:
        """Whether the metadata table locates keys."""
        return False

    @property
    def asks_filters(self) -> bool:
        """Whether bloom filters of files answer it."""
        return False


def index_type(text: str) -> IndexType | NamedIndex:
    """Parse an index: a type of Hudi's, or an installed one's name."""
    if text.upper() in IndexType.__members__:
        return IndexType(text.upper())
    name = INDEX_POINT.name(text)
    return NamedIndex(name, INDEX_POINT.load(name, IndexTraits).is_global)


def member_of(point: ExtensionPoint, built_in: type[Kind]) -> Callable[[str], Kind | str | None]:
    """Return a parser of names and of Hudi's Java classes for them."""

    def parse(text: str) -> Kind | str | None:
        if not text:
            return None
        name = point.name(text)
        point.require(name)
        return built_in(name) if name in point.built_in else name

    return parse


def kept_options(point: ExtensionPoint, name: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return a member's own options, which the table is to keep.

    An option that is a secret by its name is refused.
    """
    found = point.options_of(name, options)
    for key in filter(is_secret_name, found):
        raise InvalidOptionError(
            f"{point.options_prefix}{name}.{key}",
            "***",
            "the table would keep it, and a table keeps no secrets",
            f"Have the {point.kind} find it elsewhere, such as in the environment.",
        )
    return found


# --- named key generators and record mergers, as tables keep them ---------------------------------


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
