"""Option classes: each option is declared once, as a class attribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar, dataclass_transform, overload

from hudi_core.config.key import ConfigKey, Group

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
