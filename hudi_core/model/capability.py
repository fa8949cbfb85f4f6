"""Capabilities of a table format, as data; nothing undeclared is assumed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Capability(StrEnum):
    """One ability of a table format, named as in reports and errors.

    Its members are strings, and any string can be declared: ``"clustering"`` is
    ``Capability.CLUSTERING``, and an ability that a later release knows is no error of this one.

    A table whose settings, or an action whose effect, needs an ability that the format does not
    declare is refused before the first file is written.
    """

    SINGLE_STEP = "single_step"
    """The format keeps no metadata of its own: an instant is complete when the Hudi timeline holds
    it, and there is no step 2 that could be missing."""

    # kinds of tables
    COPY_ON_WRITE = "copy_on_write"
    MERGE_ON_READ = "merge_on_read"
    DELETION_VECTORS = "deletion_vectors"
    """Tables of the type MERGE_ON_READ in the mode ``split``: commits delete rows of data files by
    their positions, and the format's readers leave these out."""
    VIRTUAL_KEYS = "virtual_keys"
    """Data files without the meta columns (``hoodie.populate.meta.fields=false``)."""
    DROPPED_PARTITION_COLUMNS = "dropped_partition_columns"
    """Data files without the partition columns."""

    # kinds of partitioning
    UNPARTITIONED = "unpartitioned"
    IDENTITY_PARTITIONS = "identity_partitions"
    """Every partition value is a column's value."""
    TRANSFORMED_PARTITIONS = "transformed_partitions"
    """Partition values computed from columns: timestamp and custom key generators."""

    EMPTY_PARTITION_VALUES = "empty_partition_values"
    """Rows whose partition value is an empty string share a partition with those that have none,
    and each keeps its own value."""

    # places of data files
    STORAGE_PATH = "storage_path"
    """Data files lie below a storage path, in folders that a storage strategy picks."""
    SEVERAL_STORAGE_PATHS = "several_storage_paths"
    SHARED_STORAGE_PATH = "shared_storage_path"
    """Several tables may share a storage path: the format keeps its metadata in the table's folder.
    Otherwise it keeps it in the storage path, which is the table's alone."""

    # actions
    REPLACE = "replace"
    """Whole file groups are replaced: insert_overwrite(_table), delete_partition."""
    CLUSTERING = "clustering"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    CONVERSION = "conversion"
    """A table that already holds rows can be given this format."""
    TAKE_IN = "take_in"
    """A commit can be recorded on commits of others, and take files that these brought out of the
    format in the same change (:class:`~hudi_core.model.extra_metadata.TakenIn`)."""

    # schema evolution
    ADD_COLUMN = "add_column"
    DROP_COLUMN = "drop_column"
    RENAME_COLUMN = "rename_column"
    REORDER_COLUMNS = "reorder_columns"
    PROMOTE_TYPE = "promote_type"
    """A column's type becomes a wider one, such as int to long; which ones, the format says."""

    @property
    def words(self) -> str:
        """The name as a person writes it."""
        return self.value.replace("_", " ")


SCHEMA_EVOLUTION = frozenset(
    {
        Capability.ADD_COLUMN,
        Capability.DROP_COLUMN,
        Capability.RENAME_COLUMN,
        Capability.REORDER_COLUMNS,
        Capability.PROMOTE_TYPE,
    }
)
"""The kinds of schema change."""


@dataclass(frozen=True, slots=True)
class FormatCapabilities:
    """The abilities that a format declares.

    Attributes
    ----------
    declared
        What is not in here is not supported; empty by default.
    promotions
        With ``PROMOTE_TYPE``: the names of the changes of type that the format can hold, of those
        in :mod:`hudi_core.schema.casting`; ``None`` for all that a table can make.
    reasons
        Why the format lacks an ability, to follow "because"; for errors.
    """

    declared: frozenset[str] = frozenset()
    promotions: frozenset[str] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        *capabilities: str,
        promotions: Iterable[str] | None = None,
        reasons: Mapping[str, str] | None = None,
    ) -> FormatCapabilities:
        """Return the declaration of just these abilities."""
        named = None if promotions is None else frozenset(promotions)
        return cls(frozenset(capabilities), named, dict(reasons or {}))

    @property
    def unknown(self) -> tuple[str, ...]:
        """What is declared and this release does not know, sorted."""
        return tuple(sorted(self.declared - set(Capability)))

    def __contains__(self, capability: object) -> bool:
        return capability in self.declared

    def __iter__(self) -> Iterator[Capability]:
        """Iterate over those known, in the order of :class:`Capability`."""
        return (capability for capability in Capability if capability in self.declared)

    def can_promote(self, promotion: str) -> bool:
        """Whether the format can hold a type promotion, given by its name."""
        return Capability.PROMOTE_TYPE in self.declared and (
            self.promotions is None or promotion in self.promotions
        )
