"""Capabilities that tables and actions require of their format."""

from __future__ import annotations

from collections.abc import Iterable

from hudi_core.config.kinds import TableType
from hudi_core.config.table import TableConfig
from hudi_core.errors import UnsupportedCapabilityError
from hudi_core.model.capability import SCHEMA_EVOLUTION, Capability, FormatCapabilities
from hudi_core.model.partition_transform import PartitionTransform

__all__ = [
    "SCHEMA_EVOLUTION",
    "Capability",
    "FormatCapabilities",
    "require",
    "table_needs",
]


def require(name: str, declared: FormatCapabilities, needed: Iterable[Capability]) -> None:
    """Refuse what a format does not declare."""
    missing = [capability for capability in needed if capability not in declared]
    if missing:
        words = ", ".join(capability.words for capability in missing)
        why = dict.fromkeys(declared.reasons.get(capability, "") for capability in missing)
        raise UnsupportedCapabilityError(name, words, "; ".join(filter(None, why)))


def table_needs(config: TableConfig) -> tuple[Capability, ...]:
    """Capabilities that every table of these settings needs of its format."""
    if config.table_type is TableType.COPY_ON_WRITE:
        needs = [Capability.COPY_ON_WRITE]
    else:
        needs = [Capability.DELETION_VECTORS if config.is_split else Capability.MERGE_ON_READ]
    if not config.partition_fields:
        needs.append(Capability.UNPARTITIONED)
    elif set(config.partition_transforms) == {PartitionTransform.IDENTITY}:
        needs.append(Capability.IDENTITY_PARTITIONS)
    else:
        needs.append(Capability.TRANSFORMED_PARTITIONS)
    if config.makes_keys:
        needs.append(Capability.VIRTUAL_KEYS)
    if not config.placement.is_default:
        needs.append(Capability.STORAGE_PATH)
    if len(config.placement.paths) > 1:
        needs.append(Capability.SEVERAL_STORAGE_PATHS)
    if config.drop_partition_columns:
        needs.append(Capability.DROPPED_PARTITION_COLUMNS)
    return tuple(needs)
