"""Options that a table format declares for itself, below ``hoodie.table.format.<name>.``."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from hudi_core.config.option_warnings import FORMAT_PREFIX
from hudi_core.config.options import is_secret_name, parsed
from hudi_core.model.client import MetaClientView

T_co = TypeVar("T_co", covariant=True)

NAME: Final = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*\.?")
"""What may follow the prefix."""
LOCATION: Final = "location"
"""The option that every format has: where its metadata is. The table keeps it."""


def option_key(format_name: str, name: str) -> str:
    """Return the whole name of an option of a format."""
    return f"{FORMAT_PREFIX}{format_name}.{name}"


@dataclass(frozen=True, eq=False)
class FormatOption(Generic[T_co]):
    """The declaration of one option of a table format.

    The core knows it by this: it refuses a bad value before the first file is written, warns of a
    name that is nearly this one, keeps the value where that is asked for, and lists the option in
    the reference and in `hudi formats`.

    Attributes
    ----------
    name
        What follows ``hoodie.table.format.<format>.``. A name that ends in a full stop means
        all options below it, which the format passes on: their values are not checked.
    default
        The value when the option is not given.
    parse
        Turns the text into the value; raises ``ValueError`` with a reason that completes the
        sentence "... cannot be used: ...".
    doc
        What it means and in which unit, in one or two sentences.
    choices
        The strings that are supported, compared without regard to case; empty when any text may be.
    default_text
        The default as the reference shows it, where ``str(default)`` would not say it.
    is_stored
        Whether the table keeps the value it is created with; another one is an error from then on.
    """

    name: str
    default: T_co
    parse: Callable[[str], T_co]
    doc: str
    choices: tuple[str, ...] = ()
    default_text: str | None = None
    is_stored: bool = False

    @property
    def is_prefix(self) -> bool:
        """Whether it means all options below its name."""
        return self.name.endswith(".")

    @property
    def shown_default(self) -> str:
        """The default as the reference shows it."""
        if self.default_text is not None:
            return self.default_text
        if isinstance(self.default, bool):
            return str(self.default).lower()
        return "(none)" if self.default is None else str(self.default)

    def read(self, meta_client: MetaClientView) -> T_co:
        """The option's value for a table, or its default.

        Raises
        ------
        InvalidOptionError
            The string cannot be used; the error explains why and what is supported.
        """
        text = meta_client.format_options.get(self.name)
        if text is None:
            return self.default
        return self.value(option_key(meta_client.config.table_format, self.name), text)

    def value(self, key: str, text: str) -> T_co:
        """Return the parsed value of ``text``; ``key`` is the full name.

        See :meth:`read`.
        """
        hint = "`hudi formats` describes the option."
        given = key, text.strip()
        return parsed(self.parse, self.choices, given, hint, is_secret=is_secret_name(key))
