"""Declarations of what a table keeps in ``hoodie.properties``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hudi_core.config.key import ConfigKey

T = TypeVar("T")


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
    """

    stored_as: str | None = None
    to_text: Callable[[Any], str | None] = property_text
    is_required: bool = False
    absent: T | None = None
    usual: str | None = None
    is_stated: bool = False
    is_open: bool = False

    @property
    def property_name(self) -> str:
        """The name in ``hoodie.properties``."""
        return self.stored_as or self.key
