"""The entries that a table is to have in a metastore."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.config.kinds import TableType
from hudi_core.config.read import ReadConfig
from hudi_core.config.sync import Extractor, GlueConfig, SyncConfig, TableStrategy
from hudi_core.config.table import TableConfig
from hudi_core.errors import PartitionValueError, UnsupportedTableError
from hudi_core.metastore.catalog import MetastoreColumn, MetastoreTable
from hudi_core.model.files import PartitionPath
from hudi_core.model.format import Registration
from hudi_core.model.partition_transform import PartitionTransform
from hudi_core.read.connector.handles import PLACE_KEY
from hudi_core.schema.arrow_types import DOC, is_bytes, is_list, is_text
from hudi_core.schema.table_schema import META_COLUMNS
from hudi_core.storage.partition_path import unescaped
from hudi_core.table_handle import OpenTable

# --- types of columns in Hive's words, as Hudi's sync tools write them ----------------------------


_FLAT: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pt.is_boolean, "boolean"),
    (pt.is_int64, "bigint"),
    (pt.is_integer, "int"),
    (pt.is_float64, "double"),
    (pt.is_floating, "float"),
    (pt.is_date, "date"),
    (pt.is_time, "bigint"),  # Hive has no times of day: microseconds, as in the files
    (is_text, "string"),
    (is_bytes, "binary"),
)
_WIDER: Final = {
    "int": ("bigint", "double"),
    "float": ("double",),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+),(\d+)\)")


def hive_type(kind: pa.DataType, *, timestamps: bool) -> str:
    """A column's type.

    Without ``timestamps`` they are the numbers that are in the files.
    """
    if pt.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pt.is_timestamp(kind):
        return "timestamp" if timestamps and kind.unit in ("us", "ms") else "bigint"
    if pt.is_struct(kind):
        fields = (f"{one.name}:{hive_type(one.type, timestamps=timestamps)}" for one in kind)
        return f"struct<{','.join(fields)}>"
    if pt.is_map(kind):
        key = hive_type(kind.key_type, timestamps=timestamps)
        return f"map<{key},{hive_type(kind.item_type, timestamps=timestamps)}>"
    if is_list(kind):
        return f"array<{hive_type(kind.value_type, timestamps=timestamps)}>"
    return next(name for fits, name in _FLAT if fits(kind))


def may_become(before: str, after: str) -> bool:
    """Whether readers of one type of a column may take another.

    Nested types may change in any way that keeps them nested: a metastore does not look into them.
    """
    before, after = _plain(before), _plain(after)
    if before == after or after in _WIDER.get(before, ()):
        return True
    old, new = _DECIMAL.fullmatch(before), _DECIMAL.fullmatch(after)
    if old and new:
        return int(old[2]) == int(new[2]) and int(old[1]) <= int(new[1])
    outer = before.partition("<")[0]
    return "<" in before and after.startswith(f"{outer}<")


def same_type(one: str, other: str) -> bool:
    """Whether two strings are one type: case and blanks do not count."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return re.sub(r"\s+", "", text).lower()


# --- entries --------------------------------------------------------------------------------------


_HADOOP: Final = "org.apache.hudi.hadoop."
_BASE_FILES: Final = f"{_HADOOP}HoodieParquetInputFormat"
_REAL_TIME: Final = f"{_HADOOP}realtime.HoodieParquetRealtimeInputFormat"
_FORMER: Final = {
    _BASE_FILES: "com.uber.hoodie.hadoop.HoodieInputFormat",
    _REAL_TIME: "com.uber.hoodie.hadoop.realtime.HoodieRealtimeInputFormat",
}
_OUTPUT: Final = "org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"
_SERDE: Final = "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe"
_STRATEGY_KEY: Final = "hudi.storage.strategy"
_AS_BASE_FILES: Final = "hoodie.query.as.ro.table"
_ATHENA_LISTING: Final = "hudi.metadata-listing-enabled"
_READ_OPTIMIZED: Final = "read_optimized"


@dataclass(frozen=True, slots=True)
class SyncedTable:
    """A table, and how it is to be registered.

    ``glue`` is set where it is registered in Glue. ``schema`` has the meta columns first. ``place``
    spells places of files as the metastore does.
    """

    opened: OpenTable
    config: SyncConfig
    glue: GlueConfig | None
    registration: Registration
    schema: pa.Schema
    values: PartitionValues
    place: Callable[[str], str]

    @property
    def table_config(self) -> TableConfig:
        """The table's properties."""
        return self.opened.client.config

    @property
    def database(self) -> str:
        """The database that its entries are in."""
        of_glue = None if self.glue is None else self.glue.database
        # metastores know names in lower case alone
        return (of_glue or self.config.database or self.table_config.database or "default").lower()

    @property
    def name(self) -> str:
        """The name of its entry, or the begin of several names."""
        of_glue = None if self.glue is None else self.glue.table
        return (of_glue or self.config.table or self.table_config.name).lower()

    @property
    def has_partitions(self) -> bool:
        """Whether entries of partitions belong to it."""
        return self.registration.is_hudi and bool(self.values.columns)

    @property
    def recreates(self) -> bool:
        """Whether an entry that cannot be changed is made again."""
        return self.config.recreates or (self.glue is not None and self.glue.recreates)

    def partition_place(self, path: str) -> str:
        """Where a partition is, as the metastore spells it."""
        base = self.place(self.registration.location)
        return f"{base}/{path}" if path else base


def require_registrable(
    opened: OpenTable, config: SyncConfig, registration: Registration | None
) -> Registration:
    """The registration of a table that may have an entry."""
    base_path, table = opened.client.base_path, opened.client.config
    if registration is None:
        raise UnsupportedTableError(
            base_path,
            f"has the format {table.table_format}, which does not say how metastores know its "
            "tables",
            "Read it by its path.",
        )
    if registration.held_by is not None:
        raise UnsupportedTableError(
            base_path,
            f"is in the catalog {registration.held_by}, whose entry each commit changes itself; a "
            "second entry would fall behind",
            "Read it there; `hudi table validate` shows whether that entry is up to date.",
        )
    is_hidden = registration.is_hudi and not table.placement.is_default
    if is_hidden and not config.takes_hidden_layout:
        raise UnsupportedTableError(
            base_path,
            f"keeps its data files elsewhere ({_STRATEGY_KEY}={table.placement.strategy}), where "
            "Hudi's readers do not look for them: an engine that finds its entry reads no rows",
            f"Set {SyncConfig.takes_hidden_layout.key}=true where only readers of this project "
            "are to find it, or move the files by `hudi table convert --storage default`.",
        )
    return registration


def entries_of(table: SyncedTable) -> tuple[MetastoreTable, ...]:
    """The entries of a table, without what records the last sync."""
    if not table.registration.is_hudi:
        return (_foreign_entry(table),)
    if table.table_config.table_type is not TableType.MERGE_ON_READ:
        return (_entry(table, table.name, _BASE_FILES, as_base_files=False),)
    config, name = table.config, table.name
    if table.table_config.is_split:
        if config.strategy is TableStrategy.RO:
            raise UnsupportedTableError(
                table.opened.client.base_path,
                "is of the mode split, whose base files alone have former versions of rows",
                f"Leave {SyncConfig.strategy.key} out, or set it to RT.",
            )
        return (_entry(table, name, _REAL_TIME, as_base_files=False),)
    if config.strategy is TableStrategy.RO:
        return (_entry(table, name, _BASE_FILES, as_base_files=True),)
    if config.strategy is TableStrategy.RT:
        return (_entry(table, name, _REAL_TIME, as_base_files=False),)
    base_files = name if config.skips_ro_suffix else f"{name}_ro"
    found = [
        _entry(table, base_files, _BASE_FILES, as_base_files=True),
        _entry(table, f"{name}_rt", _REAL_TIME, as_base_files=False),
    ]
    if config.names_snapshot and base_files != name:
        found.append(_entry(table, name, _REAL_TIME, as_base_files=False))
    return tuple(found)


def _entry(
    table: SyncedTable, name: str, input_format: str, *, as_base_files: bool
) -> MetastoreTable:
    """An entry for Hudi's readers."""
    config, keys = table.config, table.values.columns
    place = table.place(table.registration.location)
    serde = {"serialization.format": "1", **dict(config.serde_properties)}
    parameters = dict(config.table_properties)
    if config.as_datasource:
        serde |= {"path": place, _AS_BASE_FILES: str(as_base_files).lower()}
        options = {"path": str(table.opened.client.base_path)}
        if as_base_files:
            options[ReadConfig.query_type.key] = _READ_OPTIMIZED
        parameters |= spark_properties(
            table.schema,
            keys,
            options,
            length=config.schema_length,
            version=config.spark_version,
        )
    if not table.table_config.placement.is_default:
        parameters[_STRATEGY_KEY] = table.table_config.placement.strategy
    if table.glue is not None:
        parameters[_ATHENA_LISTING] = str(table.glue.lists_metadata).upper()
    columns = _columns(table)
    own = set(keys)
    kinds = {column.name: column for column in columns}
    return MetastoreTable(
        database=table.database,
        name=name,
        location=place,
        table_type=_table_type(config),
        input_format=_FORMER[input_format] if config.uses_old_input_format else input_format,
        columns=tuple(_lower(one) for one in columns if one.name not in own),
        partition_columns=tuple(_lower(_partition_column(table, key, kinds)) for key in keys),
        parameters=_owned(parameters, config),
        serde_parameters=serde,
        output_format=_OUTPUT,
        serde=_SERDE,
    )


def _foreign_entry(table: SyncedTable) -> MetastoreTable:
    """An entry in the words of the table's format."""
    registration, config = table.registration, table.config
    place, parameters = table.place(registration.location), dict(registration.parameters)
    if registration.pointer is not None:
        parameters[registration.pointer] = table.place(parameters[registration.pointer])
    parameters[PLACE_KEY] = table.place(table.opened.client.base_path)
    path = {"path": place} if registration.has_path else {}
    return MetastoreTable(
        database=table.database,
        name=table.name,
        location=place,
        table_type=_table_type(config),
        input_format=registration.input_format,
        columns=tuple(_lower(column) for column in _columns(table)),
        parameters=_owned({**dict(config.table_properties), **parameters}, config),
        serde_parameters={
            **dict(config.serde_properties),
            **registration.serde_parameters,
            **path,
        },
        output_format=registration.output_format,
        serde=registration.serde,
    )


def _table_type(config: SyncConfig) -> str:
    return "MANAGED_TABLE" if config.is_managed else "EXTERNAL_TABLE"


def _owned(parameters: Mapping[str, str], config: SyncConfig) -> dict[str, str]:
    return dict(parameters) if config.is_managed else {**parameters, "EXTERNAL": "TRUE"}


def _columns(table: SyncedTable) -> list[MetastoreColumn]:
    config = table.config
    hidden = META_COLUMNS if config.omits_meta_columns else ()
    found = []
    for field in table.schema:
        if field.name in hidden:
            continue
        doc = (field.metadata or {}).get(DOC, b"").decode() if config.comments else ""
        kind = hive_type(field.type, timestamps=config.supports_timestamp)
        found.append(MetastoreColumn(field.name, kind, doc or None))
    return found


def _partition_column(
    table: SyncedTable, name: str, columns: Mapping[str, MetastoreColumn]
) -> MetastoreColumn:
    """A partition column, of strings where paths hold something else than values."""
    config = table.table_config
    transforms = dict(zip(config.partition_fields, config.partition_transforms, strict=True))
    is_value = transforms.get(name) is PartitionTransform.IDENTITY
    if name in columns and is_value:
        return columns[name]
    return MetastoreColumn(name, "string")


def _lower(column: MetastoreColumn) -> MetastoreColumn:
    return replace(column, name=column.name.lower())


# --- properties by which Spark reads an entry as a source's table (RFC-15) ------------------------
# Spark hands a source in Python the stored columns, and none of the options that a table was made
# with; so the first column has them in its metadata, where :mod:`pyspark_hudi` looks. Hudi's own
# source has no use for it.


PREFIX: Final = "spark.sql.sources.schema"
PROVIDER_KEY: Final = "spark.sql.sources.provider"
NOTED_KEY: Final = "hudi.read"
"""Metadata of a column under which the options of its table's reads are."""
_PLAIN: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pt.is_boolean, "boolean"),
    (pt.is_int64, "long"),
    (pt.is_integer, "integer"),
    (pt.is_float64, "double"),
    (pt.is_floating, "float"),
    (pt.is_date, "date"),
    (pt.is_time, "long"),  # microseconds, as in the files
    (is_text, "string"),
    (is_bytes, "binary"),
)


def spark_properties(
    schema: pa.Schema,
    partition_columns: Sequence[str],
    read_options: Mapping[str, str],
    *,
    length: int,
    version: str | None,
) -> dict[str, str]:
    """The properties of an entry.

    ``schema`` is in the order of the files; Spark has partition columns last, and one that is
    missing is a string. ``length`` is in characters of one property; ``version`` is Spark's,
    ``None`` to name none.
    """
    known = {field.name: field for field in schema}
    keys = [known.get(name, pa.field(name, pa.string())) for name in partition_columns]
    fields = [field for field in schema if field.name not in set(partition_columns)] + keys
    columns = [_column(field) for field in fields]
    columns[0]["metadata"][NOTED_KEY] = dict(read_options)
    text = json.dumps({"type": "struct", "fields": columns}, separators=(",", ":"))
    parts = [text[begin : begin + length] for begin in range(0, len(text), length)]
    found = {PROVIDER_KEY: "hudi", f"{PREFIX}.numParts": str(len(parts))}
    found |= {f"{PREFIX}.part.{number}": part for number, part in enumerate(parts)}
    if partition_columns:
        found[f"{PREFIX}.numPartCols"] = str(len(partition_columns))
        found |= {f"{PREFIX}.partCol.{n}": name for n, name in enumerate(partition_columns)}
    if version is not None:
        found["spark.sql.create.version"] = version
    return found


def _column(field: pa.Field) -> dict[str, Any]:
    doc = (field.metadata or {}).get(DOC)
    return {
        "name": field.name,
        "type": _type(field.type),
        "nullable": field.nullable,
        "metadata": {} if not doc else {"comment": doc.decode()},
    }


def _type(kind: pa.DataType) -> Any:
    if pt.is_struct(kind):
        return {"type": "struct", "fields": [_column(one) for one in kind]}
    if pt.is_map(kind):
        return {
            "type": "map",
            "keyType": _type(kind.key_type),
            "valueType": _type(kind.item_type),
            "valueContainsNull": kind.item_field.nullable,
        }
    if is_list(kind):
        element = kind.value_field
        return {
            "type": "array",
            "elementType": _type(element.type),
            "containsNull": element.nullable,
        }
    return _flat(kind)


def _flat(kind: pa.DataType) -> str:
    if pt.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pt.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    return next(name for fits, name in _PLAIN if fits(kind))


# --- values of partition columns by paths, as Hudi's extractors have them -------------------------


_DAY: Final = re.compile(
    r"(?:[^/=]+=)?(\d{4})/(?:[^/=]+=)?(\d{1,2})/(?:[^/=]+=)?(\d{1,2})(?:/(?:[^/=]+=)?(\d{1,2}))?"
)


@dataclass(frozen=True, slots=True)
class PartitionValues:
    """Derives values of partitions from their paths.

    ``decodes``: ``%XX`` are characters that were escaped.
    """

    fields: tuple[str, ...]
    extractor: Extractor
    decodes: bool

    @classmethod
    def of(cls, table: TableConfig, config: SyncConfig) -> PartitionValues:
        """Those of a table, by options or by its key generator."""
        given = config.partition_fields
        fields = table.partition_fields if given is None else given
        decodes = config.decode_partition
        return cls(
            fields,
            config.extractor or _usual(table, fields),
            table.url_encode if decodes is None else decodes,
        )

    @property
    def columns(self) -> tuple[str, ...]:
        """The partition columns of the entry; none without partitions."""
        return () if self.extractor is Extractor.NONE else self.fields

    def by_values(self, paths: Iterable[PartitionPath]) -> dict[tuple[str, ...], str]:
        """Paths of partitions by their values."""
        found: dict[tuple[str, ...], str] = {}
        for path in sorted(paths):
            values = self.of_path(path)
            other = found.setdefault(values, path)
            if other != path:
                raise PartitionValueError(
                    f"The partitions {other!r} and {path!r} have the same values "
                    f"{', '.join(values)}, by {self.extractor}",
                    f"Give another {SyncConfig.extractor.key}.",
                    path=path,
                )
        return found

    def of_path(self, path: PartitionPath) -> tuple[str, ...]:
        """The values of a partition."""
        found = _EXTRACTORS[self.extractor](path)
        if found is None or len(found) != len(self.fields):
            raise PartitionValueError(
                f"{self.extractor} makes no values of the partition columns "
                f"{', '.join(self.fields)} of the path {path!r}",
                f"Give another {SyncConfig.extractor.key}, or the columns that the paths have in "
                f"{SyncConfig.partition_fields.key}.",
                path=path,
            )
        return tuple(map(unescaped, found)) if self.decodes else tuple(found)


def _usual(table: TableConfig, fields: Sequence[str]) -> Extractor:
    if not fields:
        return Extractor.NONE
    if len(fields) == 1:
        # a value with slashes is one value still
        return Extractor.HIVE_STYLE if table.hive_style else Extractor.WHOLE_PATH
    return Extractor.BY_FOLDER


def _value(folder: str) -> str:
    name, equals, value = folder.partition("=")
    return value if equals else name


def _hive_style(path: str) -> Sequence[str] | None:
    name, equals, value = path.partition("=")
    return [value] if name and equals else None


def _day(path: str) -> Sequence[str] | None:
    found = _DAY.fullmatch(path)
    return None if found is None or found[4] else ["-".join((found[1], *_two(found, 2, 3)))]


def _hour(path: str) -> Sequence[str] | None:
    found = _DAY.fullmatch(path)
    return None if found is None or not found[4] else ["-".join((found[1], *_two(found, 2, 3, 4)))]


def _two(found: re.Match[str], *groups: int) -> list[str]:
    return [found[group].zfill(2) for group in groups]


_EXTRACTORS: Final[Mapping[Extractor, Callable[[str], Sequence[str] | None]]] = {
    Extractor.BY_FOLDER: lambda path: [_value(folder) for folder in path.split("/")],
    Extractor.WHOLE_PATH: lambda path: [path],
    Extractor.HIVE_STYLE: _hive_style,
    Extractor.DAY: _day,
    Extractor.HOUR: _hour,
    Extractor.NONE: lambda _: [],
}
