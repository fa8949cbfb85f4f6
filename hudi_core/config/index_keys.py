"""Index options: how incoming keys find their file groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, Self

from hudi_core.config.extension_points import NamedIndex, index_type
from hudi_core.config.kinds import IndexType
from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.options import ConfigKey, Group, Option, Options
from hudi_core.config.parsers import integer
from hudi_core.config.stored import Property, Setting, property_text
from hudi_core.config.table import TableConfig
from hudi_core.model.buckets import Buckets

_RECORD_INDEX: Final = MetadataConfig.record_index


def bucket_engine(text: str) -> str:
    """Parse the bucket index's engine; consistent hashing is not supported.

    The error names the requested engine.
    """
    if text.upper() == "CONSISTENT_HASHING":
        raise ValueError("consistent-hashing buckets are not supported")
    if text.upper() != "SIMPLE":
        raise ValueError("there is no such engine")
    return text.upper()


class IndexConfig(Options, group=Group.WRITE):
    """How incoming keys find their file groups.

    ``moves_partition`` is, of a global index, whether a row moves to the partition that it comes
    with, or stays where its key is stored. The options of buckets are for :func:`buckets_of`.
    """

    index_type: Option[IndexType | NamedIndex] = Option(
        "hoodie.index.type", default=IndexType.SIMPLE, parse=index_type
    )
    """How incoming keys find the file groups that hold them. SIMPLE reads the keys of every file of
    the partitions concerned. BLOOM rules files out by the range of their keys and by their bloom
    filters first. The GLOBAL_ ones look into all partitions: a key is unique in the whole table.
    RECORD_INDEX, by its newer name GLOBAL_RECORD_LEVEL_INDEX, asks the record index of the metadata
    table, which has to be there: a key is unique in the whole table, and only files that hold one
    of the keys are read. RECORD_LEVEL_INDEX does so with a record index that is kept by partitions:
    a key is unique in its partition. BUCKET computes the file group from the key; it is the layout
    of a table, chosen before its first rows and kept with it. Or the name of an index that an
    installed distribution provides (`docs/extension_points.md`)."""
    moves_partition: Option[bool] = Option(
        "hoodie.simple.index.update.partition.path", default=True
    )
    """GLOBAL_SIMPLE: what becomes of a row whose key is stored in another partition. true: it moves
    to its new partition. false: it replaces the stored row in the old partition, and its partition
    columns keep the stored values."""
    asks_metadata: Option[bool] = Option(
        "hoodie.bloom.index.use.metadata",
        default=True,
        hudi_default="false",
        reason="A table that keeps bloom filters in its metadata table does so for this index; "
        "what it has none of is found in footers as without.",
    )
    """BLOOM and GLOBAL_BLOOM: whether bloom filters come from the metadata table, and the ranges of
    keys with them, where it keeps bloom filters. Footers of files are opened of those only that it
    has none of."""
    bloom_moves = ConfigKey("hoodie.bloom.index.update.partition.path", default=True)
    """GLOBAL_BLOOM: the same as hoodie.simple.index.update.partition.path."""
    record_moves = ConfigKey("hoodie.record.index.update.partition.path", default=False)
    """RECORD_INDEX: the same as hoodie.simple.index.update.partition.path."""
    bucket_number = ConfigKey(
        "hoodie.bucket.index.num.buckets", default=256, parse=integer(1, 99_999_999)
    )
    """BUCKET: buckets of every partition, each one file group. Kept with the table."""
    bucket_fields = ConfigKey[tuple[str, ...]](
        "hoodie.bucket.index.hash.field", default=(), default_text="(the record key)"
    )
    """BUCKET: the record key fields whose values choose the bucket. Kept with the table."""
    bucket_engine = ConfigKey("hoodie.index.bucket.engine", default="SIMPLE", parse=bucket_engine)
    """BUCKET: SIMPLE, with a fixed number of buckets. CONSISTENT_HASHING is refused."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`; each global index has its own option of moves."""
        cls.bucket_engine.read(options)
        index_type = cls.index_type.read(options)
        moves: ConfigKey[bool] = cls.moves_partition
        if index_type is IndexType.GLOBAL_BLOOM:
            moves = cls.bloom_moves
        elif index_type.is_record_index:
            moves = cls.record_moves
        return cls._read(options, moves_partition=moves.read(options))


def buckets_of(options: Mapping[str, str], record_key: tuple[str, ...]) -> Buckets | None:
    """Return the bucket layout in a user's options; ``None`` without one."""
    IndexConfig.bucket_engine.read(options)
    if IndexConfig.index_type.read(options) is not IndexType.BUCKET:
        return None
    if not record_key:
        raise IndexConfig.index_type.refused(
            IndexType.BUCKET.value,
            "buckets are computed from the record key, and the table has none",
            "Name a record key, or use another index.",
        )
    fields = IndexConfig.bucket_fields.read(options)
    others = [name for name in fields if name not in record_key]
    if others:
        raise IndexConfig.bucket_fields.refused(
            ",".join(fields),
            f"{', '.join(others)} is no record key field",
            f"Name some of: {', '.join(record_key)}.",
        )
    return Buckets(IndexConfig.bucket_number.read(options), fields or record_key)


def stored_buckets(properties: Mapping[str, str], record_key: tuple[str, ...]) -> Buckets | None:
    """Return the layout that a table has stored; ``None`` without buckets.

    Another index that was stored binds no writer: it leaves no trace in the layout.
    """
    kind = properties.get(IndexConfig.index_type.key, "").strip().upper()
    if kind != IndexType.BUCKET or not record_key:
        return None
    fields = IndexConfig.bucket_fields.read(properties)
    return Buckets(IndexConfig.bucket_number.read(properties), fields or record_key)


def bucket_properties(buckets: Buckets | None) -> list[Property]:
    """Stored properties of a table's buckets, for all its writers.

    Hudi itself stores no option of an index (apache/hudi#13241), so that two jobs may use different
    buckets. Its Spark data source takes every stored property for an option that a job does not
    give, unless it overwrites the table (``HoodieSparkSqlWriter.mergeParamsAndGetHoodieConfig``):
    with these it finds the same buckets. Jobs of Hudi's other writers have to name them.
    """
    return [(key.key, property_text(value)) for key, value in _stated(buckets)]


def split_properties(is_split: bool) -> list[Property]:
    """Return the index that a split table stores; ``None`` for others.

    Hudi's other indexes look at the keys of base files, dead ones too, and would write a row twice.
    Its Spark data source takes these where a job names no index, builds the record index if there
    is none, and refuses another one as a conflict (``HoodieWriterUtils.validateTableConfig``).
    """
    kind = IndexConfig.index_type.key, IndexType.RECORD_INDEX.value
    enabled = _RECORD_INDEX.aliases[0], "true"  # which all releases know
    return [(name, text if is_split else None) for name, text in (kind, enabled)]


def _stated(buckets: Buckets | None) -> list[tuple[ConfigKey[Any], object]]:
    """What buckets say of options."""
    if buckets is None:
        return []
    return [
        (IndexConfig.index_type, IndexType.BUCKET),
        (IndexConfig.bucket_number, buckets.number),
        (IndexConfig.bucket_fields, buckets.fields),
    ]


def _against(options: Mapping[str, str], stored: TableConfig) -> TableConfig:
    if stored.buckets is None:
        buckets = buckets_of(options, stored.record_key_fields)
        return stored if buckets is None else replace(stored, buckets=buckets)
    for key, value in _stated(stored.buckets):
        key.require_same(options, value, stored.raw)
    return stored


BUCKETS: Final = Setting(
    lambda options, made: {"buckets": buckets_of(options, made["record_key_fields"])},
    lambda read, made: {
        "buckets": read(partial(stored_buckets, record_key=made["record_key_fields"]))
    },
    lambda config: [
        *bucket_properties(config.buckets),
        *(split_properties(True) if config.is_split else ()),
    ],
    _against,
    (
        *IndexConfig.index_type.names,
        *IndexConfig.bucket_number.names,
        *IndexConfig.bucket_fields.names,
        *IndexConfig.bucket_engine.names,
    ),
    # an index other than buckets leaves no trace in a table, and may change from write to write
    lambda stored: (
        IndexConfig.index_type.key,
        *_RECORD_INDEX.names,
        *(key.key for key, _ in _stated(stored.buckets)),
    ),
)
