"""Key generators, each one a value: what it makes of which fields.

A new key generator is declared here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import Final

from hudi_core.config.kinds import SIMPLE_FIELD, TIMESTAMP_FIELD, KeyGeneratorType

_PACKAGE: Final = "org.apache.hudi.keygen."
_AVRO: Final = "_AVRO"


@dataclass(frozen=True, slots=True)
class KeyGeneratorForm:
    """What a key generator makes of the record key and partition fields.

    The key of several fields is always ``f1:v1,f2:v2``.

    ``java_name`` is what the names of Hudi's two classes begin with. ``field_type`` is one of
    ``FIELD_TYPES``; ``None`` where there is no partition field, or the table says it of each
    (``states_types``: ``city:SIMPLE``). ``most_keys`` and ``most_partitions`` are greatest numbers
    of fields, ``None`` for any; ``limits`` says it in errors. ``may_name_one_key`` means that the
    key of one field can be ``f:v``, which the table's encoding decides.
    """

    java_name: str
    field_type: str | None
    limits: str
    most_keys: int | None = None
    most_partitions: int | None = None
    states_types: bool = False
    needs_partition: bool = False
    may_name_one_key: bool = False

    def fits(self, record_key: Sized, partition: Sized) -> bool:
        """Whether it takes that many fields."""
        return (
            (self.most_keys is None or len(record_key) <= self.most_keys)
            and (self.most_partitions is None or len(partition) <= self.most_partitions)
            and (len(partition) > 0 or not self.needs_partition)
        )


KEY_GENERATORS: Final[Mapping[KeyGeneratorType, KeyGeneratorForm]] = {
    KeyGeneratorType.SIMPLE: KeyGeneratorForm(
        "Simple",
        SIMPLE_FIELD,
        "takes one record key field and one partition field",
        most_keys=1,
        most_partitions=1,
    ),
    KeyGeneratorType.COMPLEX: KeyGeneratorForm(
        "Complex", SIMPLE_FIELD, "takes any fields", may_name_one_key=True
    ),
    KeyGeneratorType.NON_PARTITION: KeyGeneratorForm(
        "Nonpartitioned",
        None,
        "makes no partitions, and the table has partition fields",
        most_partitions=0,
    ),
    KeyGeneratorType.TIMESTAMP: KeyGeneratorForm(
        "TimestampBased",
        TIMESTAMP_FIELD,
        "needs one record key field and one partition field",
        most_keys=1,
        most_partitions=1,
        needs_partition=True,
    ),
    KeyGeneratorType.CUSTOM: KeyGeneratorForm(
        "Custom",
        None,
        "needs a partition field",
        states_types=True,
        needs_partition=True,
    ),
}
"""The key generators that are built in; tables with any other are read, never written."""

KEY_GENERATOR_CLASSES: Final[Mapping[str, KeyGeneratorType]] = {
    f"{_PACKAGE}{form.java_name}{avro}KeyGenerator": kind
    for kind, form in KEY_GENERATORS.items()
    for avro in ("", "Avro")
}
"""What Hudi's key generator classes mean."""

KEY_GENERATOR_WORDS: Final[Mapping[str, KeyGeneratorType]] = {
    kind.value: kind for kind in KeyGeneratorType
} | {f"{kind.value}{_AVRO}": kind for kind in KEY_GENERATORS}
"""What Hudi's words for key generator types mean."""


def class_of_word(word: str) -> str | None:
    """The Java class of a built-in key generator type, else ``None``."""
    kind = KEY_GENERATOR_WORDS.get(word)
    form = None if kind is None else KEY_GENERATORS.get(kind)
    if form is None:
        return None
    return f"{_PACKAGE}{form.java_name}{'Avro' if word.endswith(_AVRO) else ''}KeyGenerator"


def word_of_class(name: str) -> str | None:
    """The type of a built-in key generator's Java class, else ``None``."""
    kind = KEY_GENERATOR_CLASSES.get(name)
    if kind is None:
        return None
    return f"{kind.value}{_AVRO}" if name.endswith("AvroKeyGenerator") else kind.value


def infer_key_generator(
    record_key_fields: tuple[str, ...], partition_fields: tuple[str, ...]
) -> KeyGeneratorType:
    """Return the key generator Hudi takes when none is named."""
    if not partition_fields:
        return KeyGeneratorType.NON_PARTITION
    if any(":" in name for name in partition_fields):
        return KeyGeneratorType.CUSTOM
    if len(partition_fields) == 1 and len(record_key_fields) <= 1:
        return KeyGeneratorType.SIMPLE
    return KeyGeneratorType.COMPLEX


def fields_of(
    keygen: KeyGeneratorType, stated: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Names and types of partition fields as a table lists them.

    Types are stated for a generator that takes them, such as ``city:SIMPLE``; a field without one
    has an empty one.
    """
    form = KEY_GENERATORS.get(keygen)
    return typed_fields(stated) if form is not None and form.states_types else (stated, ())


def typed_fields(fields: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names and types of partition fields such as ``city:SIMPLE``.

    A field without a type has an empty one.
    """
    parts = [field.partition(":") for field in fields]
    return (
        tuple(name.strip() for name, _, _ in parts),
        tuple(kind.strip().upper() for _, _, kind in parts),
    )


def has_time_based(keygen: KeyGeneratorType, types: tuple[str, ...]) -> bool:
    """Whether a table has TIMESTAMP partition fields."""
    form = KEY_GENERATORS.get(keygen)
    return TIMESTAMP_FIELD in (types or (() if form is None else (form.field_type,)))
