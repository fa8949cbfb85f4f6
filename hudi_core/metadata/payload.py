"""What a record of the metadata table says.

A field of its Avro record.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self


def required(name: str, kind: Any) -> dict[str, Any]:
    """A field of an Avro record."""
    return {"name": name, "type": kind}


def optional(name: str, kind: Any) -> dict[str, Any]:
    """A field of an Avro record that may be null."""
    return {"name": name, "type": ["null", kind], "default": None}


def avro_record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    """An Avro record."""
    return {"type": "record", "name": name, "fields": list(fields)}


class Payload(ABC):
    """What a record says.

    A value of one of the fields of its Avro record.
    """

    __slots__ = ()

    types: ClassVar[tuple[int, ...]]
    field: ClassVar[dict[str, Any]]
    is_shared: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def decode(cls, content: Any) -> Self:
        """The payload of a field's value.

        A wrong value raises any of ``KeyError``, ``TypeError``, ``ValueError`` and
        ``AttributeError``.
        """

    @abstractmethod
    def encode(self) -> Mapping[str, Any]:
        """The value of the field."""


class RemovablePayload(Payload):
    """A payload that may say that what it is of is gone."""

    __slots__ = ()

    is_deleted: bool
