"""Declarations of what a table is, part by part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from hudi_core.config.options import ConfigKey, shown_value
from hudi_core.errors import CorruptMetadataError, InvalidOptionError

if TYPE_CHECKING:
    from hudi_core.config.table import TableConfig

T = TypeVar("T")
Made = Mapping[str, Any]
"""Fields of a :class:`~hudi_core.config.table.TableConfig`."""
Property = tuple[str, str | None]
"""Name and string of a stored property; ``None`` where there is none."""


def property_text(value: object) -> str | None:
    """A value's string in properties and options; ``None`` leaves it out."""
    match value:
        case None | ():
            return None
        case bool():
            return "true" if value else "false"
        case tuple():
            return ",".join(value)
    return str(value)


class StoredReader:
    """Reads stored properties; a bad one is damage, not bad input."""

    def __init__(self, properties: Mapping[str, str], path: str) -> None:
        self.properties, self.path = properties, path

    def __call__(self, read: Callable[[Mapping[str, str]], T]) -> T:
        """What a function of options reads of the properties."""
        try:
            return read(self.properties)
        except InvalidOptionError as error:
            raise CorruptMetadataError(self.path, error.what) from error


@dataclass(frozen=True, slots=True)
class Setting:
    """A part of a table's settings that is more than one property.

    ``as_new`` makes its fields of a user's options, ``as_stored`` of stored properties, both after
    the fields that are one property each. ``properties`` are those that store it. ``against``
    refuses options that contradict the table, and returns the table with what options say of it
    where it does not. It is asked where an option is given whose name begins with one of ``reads``;
    ``compared`` are names that it compares itself.
    """

    as_new: Callable[[Mapping[str, str], Made], Made]
    as_stored: Callable[[StoredReader, Made], Made]
    properties: Callable[[TableConfig], Iterable[Property]]
    against: Callable[[Mapping[str, str], TableConfig], TableConfig]
    reads: tuple[str, ...]
    compared: Callable[[TableConfig], Iterable[str]]


@dataclass(frozen=True, eq=False)
class Stored(ConfigKey[T]):
    """A property of a table, declared once for reading, writing and comparing.

    Its attribute in :class:`hudi_core.config.table_keys.TableKeys` (what a user chooses) or in
    :class:`hudi_core.config.stored_keys.ManagedKeys` (what the project keeps itself) is the field
    of :class:`hudi_core.config.table.TableConfig` that holds its value. Properties are written in
    the order of these fields.

    ``stored_as`` is its name in ``hoodie.properties``, where that is an alias. ``to_text`` returns
    ``None`` for a value that is left out. ``absent`` is what a stored table without the property
    has; ``None`` for the default. ``usual`` is the text that is left out, unless the table has
    stored it; with ``is_stated`` new tables write it as well. A table without an ``is_required``
    property is damaged. ``is_open`` means that options may say it where a stored table does not.
    ``written`` are the values that this release writes, where Hudi has more; empty for all.
    """

    stored_as: str | None = None
    to_text: Callable[[Any], str | None] = property_text
    is_required: bool = False
    absent: T | None = None
    usual: str | None = None
    is_stated: bool = False
    is_open: bool = False
    written: tuple[T, ...] = ()

    @property
    def property_name(self) -> str:
        """The name in ``hoodie.properties``."""
        return self.stored_as or self.key

    def as_new(self, options: Mapping[str, str]) -> T:
        """The value of a new table."""
        found = self.find(options)
        if found is None:
            return self.default
        value = self.parse_as(*found)
        if self.written and value not in self.written:
            shown = ", ".join(str(shown_value(one)) for one in self.written)
            raise InvalidOptionError(
                *found, "it is not supported for writing", f"Supported: {shown}."
            )
        return value

    def as_stored(self, read: StoredReader) -> T:
        """The value of a table by its properties."""
        if self.absent is None and not self.is_required:
            return read(self.read)
        is_given = self.is_given(read.properties)
        if not is_given and self.absent is not None:
            return self.absent
        value = read(self.read)
        if self.is_required and (not is_given or value is None):
            raise CorruptMetadataError(read.path, f"{self.property_name} is missing")
        return value

    def property_of(self, value: object, raw: Mapping[str, str]) -> Property:
        """The property of a value; omitted if usual and not stored before."""
        name, text = self.property_name, self.to_text(value)
        if text != self.usual or name in raw or (self.is_stated and not raw):
            return name, text
        return name, None
