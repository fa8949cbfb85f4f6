"""Option classes: each option is declared once, as a class attribute."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Self,
    TypeVar,
    dataclass_transform,
    overload,
)

from hudi_core.config.parsers import boolean, integer, names, text_or_none
from hudi_core.errors import InvalidOptionError, OptionConflictError
from hudi_core.extension.registry import named_by

# --- declarations of options ----------------------------------------------------------------------
# Options arrive as text, as Hudi's users write them. They are parsed once, at the edge, by the
# declarations made here; what is passed on inside the project are the frozen views of
# :mod:`hudi_core.config`.


T_co = TypeVar("T_co", covariant=True)
_HIDDEN: Final = "***"
_NOTHING: Final[Any] = None
"""What a declaration leaves out, whatever its type."""


class Group(StrEnum):
    """The part of the reference an option belongs to, by its heading."""

    TABLE = "Table"
    WRITE = "Write"
    CLUSTERING = "Clustering"
    COMPACTION = "Compaction"
    READ = "Read"
    SERVICES = "Table services"
    LOCK = "Locks"
    STORAGE = "Storage"
    METADATA = "Metadata table"
    METRICS = "Metrics"
    CONNECTOR = "Connector"
    TRINO = "Trino service"
    INGESTION = "Ingestion"
    SYNC = "Sync"


class Secret:
    """A string that shows in no ``str``, ``repr`` or error."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text, for the one call that needs it."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return _HIDDEN

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))


_SECRET_NAME: Final = re.compile(
    r"secret|passw(or)?d|credential|(private|access|account|encryption)[._-]?key"
    r"|(^|[._-])sas([._-]|$)|(^|[._-])token([._-]|$)",
    re.IGNORECASE,
)


def is_secret_name(name: str) -> bool:
    """Whether an option's name is that of a secret.

    No table may ever store a secret.
    """
    return _SECRET_NAME.search(name) is not None


class GivenOptions(dict[str, str]):
    """A user's options as text, whose ``repr`` shows no secret."""

    def __repr__(self) -> str:
        return repr({name: _HIDDEN if is_secret_name(name) else self[name] for name in self})

    def __or__(self, other: Mapping[str, str]) -> GivenOptions:  # type: ignore[override]
        return GivenOptions({**self, **other})


@dataclass(frozen=True, eq=False)
class ConfigKey(Generic[T_co]):
    """The declaration of one option.

    ``key`` is Hudi's own name wherever Hudi has the option. ``parse`` raises ``ValueError`` with a
    reason that completes "... cannot be used: ...". ``choices`` are compared without regard to
    case; empty when any text may be. Meaning and unit are in the docstring below the declaration,
    in one or two sentences; :func:`hudi_core.config.docs.meanings` reads them.

    An option without a default is ``None`` where it is not given. Without ``parse`` the default
    implies what there may be: true or false, a whole number from 1 on, the members of its enum,
    names with commas, a string.

    ``default_text`` is the default in the reference, where ``str(default)`` would not say it.
    ``hudi_default`` and ``reason`` are Hudi's default as text and why ours differs; both ``None``
    where they are the same. A ``secret`` value must not be shown or stored.
    """

    key: str
    _: KW_ONLY
    default: T_co = _NOTHING
    parse: Callable[[str], T_co] = _NOTHING
    aliases: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    default_text: str | None = None
    hudi_default: str | None = None
    reason: str | None = None
    secret: bool = False

    def __post_init__(self) -> None:
        if (self.hudi_default is None) is not (self.reason is None):
            raise ValueError(f"{self.key}: a deviation needs both Hudi's default and the reason")
        implied: dict[str, Any] = {}
        if self.parse is _NOTHING:
            implied["parse"] = _secret if self.secret else _parser_of(self.default)
            if isinstance(self.default, StrEnum):
                implied["choices"] = tuple(type(self.default))
        if self.default_text is None and self.default in (None, ()):
            implied["default_text"] = "(none)"
        for name, value in implied.items():
            object.__setattr__(self, name, value)

    def accept_former(self, begin: str, former: str) -> None:
        """Take the name in earlier releases as an alias."""
        if self.key.startswith(begin):
            alias = former + self.key.removeprefix(begin)
            object.__setattr__(self, "aliases", (*self.aliases, alias))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name and its aliases."""
        return (self.key, *self.aliases)

    def find(self, options: Mapping[str, str]) -> tuple[str, str] | None:
        """Return the option's given name and string; ``None`` if absent.

        Two names of the option with different strings are refused.
        """
        if options.keys().isdisjoint(self.names):
            return None
        given = [(name, options[name].strip()) for name in self.names if name in options]
        first = given[0]
        for name, text in given[1:]:
            if text != first[1]:
                raise InvalidOptionError(
                    name,
                    self._shown(text),
                    f"{first[0]}={self._shown(first[1])!r} names the same option",
                    f"Give only {self.key}.",
                )
        return first

    def is_given(self, options: Mapping[str, str]) -> bool:
        """Whether the option is given under any of its names."""
        return not options.keys().isdisjoint(self.names)

    def read(self, options: Mapping[str, str]) -> T_co:
        """Return the option's value, or its default when it is not given."""
        found = self.find(options)
        if found is None:
            return self.default
        name, text = found
        return self.parse_as(name, text)

    def parse_as(self, name: str, text: str) -> T_co:
        """Return the value of ``text``, given under ``name``; see :meth:`read`."""
        hint = "docs/configuration.md describes the option."
        return parsed(self.parse, self.choices, (name, text), hint, is_secret=self.secret)

    def given_name(self, options: Mapping[str, str]) -> str:
        """The name under which the option is given, by default its own."""
        return next((name for name in self.names if name in options), self.key)

    def refused(
        self, value: object, reason: str, hint: str, options: Mapping[str, str] | None = None
    ) -> InvalidOptionError:
        """The error of a value that cannot be used."""
        return InvalidOptionError(self.given_name(options or {}), value, reason, hint)

    def require_same(
        self, options: Mapping[str, str], value: object, raw: Mapping[str, str]
    ) -> None:
        """Refuse an option that contradicts the value of a table."""
        found = self.find(options)
        if found is None:
            return
        given = self.parse_as(*found)
        if given is not None and given != value:
            raise OptionConflictError(*found, raw.get(self.key, shown_value(value)))

    def _shown(self, text: str) -> str:
        return _HIDDEN if self.secret else text


def shown_value(value: object) -> object:
    """A value as errors show it."""
    match value:
        case tuple():
            return ",".join(value)
        case bool():
            return "true" if value else "false"
        case StrEnum():
            return str(value)  # without the name of its class
    return value


def _parser_of(default: object) -> Callable[[str], Any]:
    """The parser that a default implies."""
    match default:
        case bool():
            return boolean
        case int():
            return integer(1)
        case StrEnum():
            return type(default)
        case ():
            return names
    return text_or_none if default is None else str


def _secret(text: str) -> Secret | None:
    """Parse a secret string; a blank one counts as missing."""
    return Secret(text) if text else None


def parsed(
    parse: Callable[[str], T],
    choices: tuple[str, ...],
    given: tuple[str, str],
    hint: str,
    *,
    is_secret: bool,
) -> T:
    """The value of an option's text.

    ``given`` is name and text; ``choices`` count in any case, empty when any text may be; ``hint``
    is for errors where there are no choices to name.
    """
    name, text = given
    try:
        if choices:
            hint = f"Supported: {', '.join(choices)}."
            text = _chosen(choices, text)
        with named_by(name, text):
            return parse(text)
    except ValueError as error:
        shown = _HIDDEN if is_secret else text
        raise InvalidOptionError(name, shown, str(error), hint) from error


def _chosen(choices: tuple[str, ...], text: str) -> str:
    for choice in choices:
        if choice.lower() == text.lower():
            return choice
    raise ValueError("it is not supported")


# --- options of one part --------------------------------------------------------------------------


T = TypeVar("T")


class Option(ConfigKey[T]):
    """The declaration of an option whose value is a field.

    On the class it is the declaration, on an instance the value: ``WriteConfig.operation.key`` is
    the option's name, ``config.operation`` what a user gave.
    """

    if TYPE_CHECKING:
        # values lie in the instance's __dict__, which needs no code: this is for type checkers
        @overload
        def __get__(self, instance: None, owner: type) -> Self: ...
        @overload
        def __get__(self, instance: object, owner: type) -> T: ...
        def __get__(self, instance: object | None, owner: type) -> Self | T: ...
        def __set__(self, instance: object, value: T) -> None: ...


@dataclass_transform(frozen_default=True)
class Options:
    """Declared options of one part of the project, and their values.

    A subclass is a frozen dataclass, and has no subclasses of its own. An attribute that is
    annotated ``Option[...]`` declares an option and is a field with the option's default. A plain
    :class:`ConfigKey` declares an option that has no field of its own. Further fields are for what
    :meth:`from_options` makes of several options. ``former`` is what names of options begin with,
    and what they began with in earlier releases of Hudi.
    """

    group: ClassVar[Group]
    keys: ClassVar[tuple[ConfigKey[Any], ...]]
    by_attribute: ClassVar[Mapping[str, ConfigKey[Any]]]
    _fields: ClassVar[Mapping[str, str]]
    """Attributes of fields by the names of their options."""
    _groups: ClassVar[Mapping[str, type[Options]]]
    """Fields that hold the options of another part."""

    def __init_subclass__(cls, group: Group, former: tuple[str, str] | None = None) -> None:
        declared = {name: key for name, key in vars(cls).items() if isinstance(key, ConfigKey)}
        if former is not None:
            for key in declared.values():
                key.accept_former(*former)
        cls.group = group
        cls.by_attribute = declared
        cls.keys = tuple(declared.values())
        cls._fields = {
            option: name
            for name, key in declared.items()
            if isinstance(key, Option)
            for option in key.names
        }
        for name, key in declared.items():
            if isinstance(key, Option):
                setattr(cls, name, field(default=key.default))
        dataclass(frozen=True)(cls)
        cls._groups = {
            name: type(one) for name, one in vars(cls).items() if isinstance(one, Options)
        }
        for name, key in declared.items():
            setattr(cls, name, key)

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """The values of a user's options; defaults for the others."""
        return cls._read(options)

    @classmethod
    def _read(cls, options: Mapping[str, str], **derived: Any) -> Self:
        """The values of a user's options, those of other parts included.

        The options of fields in ``derived`` are not read.
        """
        # few of an options class are given: the others are the defaults of its fields
        given = {cls._fields[name] for name in options.keys() & cls._fields.keys()}
        given.difference_update(derived)
        values: dict[str, Any] = {
            name: key.read(options) for name, key in cls.by_attribute.items() if name in given
        }
        for name, group in cls._groups.items():
            values[name] = group.from_options(options)
        return cls(**values, **derived)
