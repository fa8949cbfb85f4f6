"""What a table is, as its ``hoodie.properties`` say (``hudi-format`` section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from hudi_core.config.index_keys import stored_buckets
from hudi_core.config.key import ConfigKey
from hudi_core.config.key_generators import fields_of, has_time_based, infer_key_generator
from hudi_core.config.kinds import KeyGeneratorType
from hudi_core.config.merging import stored_merging
from hudi_core.config.named_generators import (
    KEYGEN_CLASS_PROPERTY,
    NamedKeyGenerator,
    stored_name,
)
from hudi_core.config.placement import Placement, placement_of
from hudi_core.config.properties import CHECKSUM_KEY, FILE_NAME, table_checksum
from hudi_core.config.stored import Stored
from hudi_core.config.stored_keys import ROWS, ManagedKeys
from hudi_core.config.support import READABLE_VERSIONS
from hudi_core.config.table import TableConfig
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.timebased import TimeBased, time_based
from hudi_core.errors import CorruptMetadataError, InvalidOptionError, UnsupportedTableError
from hudi_core.model.buckets import Buckets

T = TypeVar("T")

_META_PATH: Final = f"/.hoodie/{FILE_NAME}"


def stored_config(properties: Mapping[str, str], path: str = FILE_NAME) -> TableConfig:
    """What a table is, as its properties say."""
    read = _Reader(properties, path)
    layout = _checked_layout(read, path)
    values: dict[str, Any] = {name: read.row(key) for name, key in ROWS.items()}
    version: int = values["version"]
    values |= {
        "initial_version": values["initial_version"] or version,
        "layout_version": layout,
        **_key_generation(read, values["record_key_fields"]),
        **stored_merging(read, version, properties),
        "complex_keygen_new_encoding": bool(read(ManagedKeys.complex_encoding)),
        "metadata_partitions": tuple(
            dict.fromkeys(
                read(ManagedKeys.metadata_partitions)
                + read(ManagedKeys.metadata_partitions_inflight)
            )
        ),
        # for other engines alone: a table whose key is virtual has the others
        "populate_meta_fields": values["populate_meta_fields"] or values["virtual_keys"],
        "bootstrap_base_path": read(ManagedKeys.bootstrap_base_path),
        "buckets": read.buckets(values["record_key_fields"]),
        "placement": read.placement(),
        "storage_move": read(ManagedKeys.storage_move),
    }
    return TableConfig(**values, raw=dict(properties))


def _checked_layout(read: _Reader, path: str) -> int:
    """The timeline's layout of a whole table of a readable version."""
    name, version = read.row(TableKeys.name), read.row(TableKeys.version)
    checksum = read(ManagedKeys.checksum)
    if checksum not in (None, str(table_checksum(read.text(TableKeys.database.key), name or ""))):
        raise CorruptMetadataError(path, f"{CHECKSUM_KEY} is {checksum}, another table's")
    base_path = path.removesuffix(_META_PATH)
    if version not in READABLE_VERSIONS:
        raise UnsupportedTableError(
            base_path,
            f"has table version {version}",
            "Versions 6, 8 and 9 are read; upgrade or downgrade the table with Apache Hudi.",
        )
    expected = 1 if version == 6 else 2
    layout = read(ManagedKeys.layout_version) or expected
    if layout != expected:
        raise UnsupportedTableError(
            base_path,
            f"has timeline layout {layout}, which table version {version} does not have",
            "Restore hoodie.properties from a backup of the table.",
        )
    return layout


def _key_generation(read: _Reader, record_key: tuple[str, ...]) -> dict[str, Any]:
    """How keys and partition paths are made: fields of ``TableConfig``."""
    partition = read(TableKeys.partition_path)
    by_name = read(TableKeys.key_generator_class) or read(TableKeys.key_generator)
    named = None
    if isinstance(by_name, str) and not isinstance(by_name, KeyGeneratorType):
        name = stored_name(read.text(KEYGEN_CLASS_PROPERTY))
        named = None if name is None else NamedKeyGenerator.stored(name, read.properties)
        by_name = KeyGeneratorType.USER_PROVIDED
    keygen = by_name or infer_key_generator(record_key, partition)
    partition, types = fields_of(keygen, partition)
    return {
        "partition_fields": partition,
        "partition_types": types,
        "keygen_type": keygen,
        "named_keygen": named,
        "time_based": read.time_based(keygen, types),
    }


class _Reader:
    """Reads stored properties; a bad one is damage, not bad input."""

    def __init__(self, properties: Mapping[str, str], path: str) -> None:
        self.properties, self._path = properties, path

    def __call__(self, key: ConfigKey[T]) -> T:
        try:
            return key.read(self.properties)
        except InvalidOptionError as error:
            raise CorruptMetadataError(self._path, error.what) from error

    def row(self, key: Stored[T]) -> T:
        """The value of a property that is one field."""
        if key.absent is None and not key.is_required:
            return self(key)
        is_given = key.is_given(self.properties)
        if not is_given and key.absent is not None:
            return key.absent
        value = self(key)
        if key.is_required and (not is_given or value is None):
            raise CorruptMetadataError(self._path, f"{key.property_name} is missing")
        return value

    def text(self, name: str) -> str | None:
        """A property as it was read."""
        return self.properties.get(name)

    def time_based(self, keygen: KeyGeneratorType, types: tuple[str, ...]) -> TimeBased | None:
        if not has_time_based(keygen, types):
            return None
        try:
            return time_based(self.properties)
        except InvalidOptionError:
            return None  # such a table is read, and refused where it is written

    def placement(self) -> Placement:
        try:
            return placement_of(self.properties)
        except InvalidOptionError as error:
            raise CorruptMetadataError(self._path, error.what) from error

    def buckets(self, record_key: tuple[str, ...]) -> Buckets | None:
        try:
            return stored_buckets(self.properties, record_key)
        except InvalidOptionError as error:
            raise CorruptMetadataError(self._path, error.what) from error
