"""The schema of a table: Arrow types and unique field ids.

Sources: house rule on field ids; ``hudi-format`` section 4 (meta columns) and sections 2 and 3
(Avro schemas).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.schema.arrow_types import (
    DOC,
    FIELD_ID,
    children,
    field_id,
    normalise_field,
    require_case_distinct,
    require_distinct,
    walk,
    with_children,
)
from hudi_core.schema.avro_types import (
    record_from_avro,
    record_to_avro,
    says_local,
    with_local_words,
)
from hudi_core.schema.casting import cast_array, missing_column, require_known_columns

COMMIT_TIME: Final = "_hoodie_commit_time"
COMMIT_SEQNO: Final = "_hoodie_commit_seqno"
RECORD_KEY: Final = "_hoodie_record_key"
PARTITION_PATH: Final = "_hoodie_partition_path"
FILE_NAME: Final = "_hoodie_file_name"
META_COLUMNS: Final = (COMMIT_TIME, COMMIT_SEQNO, RECORD_KEY, PARTITION_PATH, FILE_NAME)
"""Names of the meta columns, in the order in which they precede the data columns of a file."""
IS_DELETED: Final = "_hoodie_is_deleted"
"""Name of the boolean data column by which a row says that it deletes."""
KEPT_PREFIX: Final = "_hoodie_"
"""What the names begin with that Hudi keeps for itself."""


def is_column(columns: Iterable[pa.Field], path: str) -> bool:
    """Whether a path names a column or a field of structs."""
    name, _, below = path.partition(".")
    found = next((field for field in columns if field.name == name), None)
    if found is None or not below:
        return found is not None
    return bool(pt.is_struct(found.type)) and is_column(found.type, below)


@dataclass(frozen=True, eq=False)
class TableSchema:
    """The columns of a table, with field ids.

    Equality compares ids and comments too, unlike that of Arrow's schemas.

    Attributes
    ----------
    arrow
        The data columns. Every field, at any depth, carries its id as ``PARQUET:field_id``.
    meta_ids
        Ids of the five meta columns, in their order.
    last_column_id
        Greatest id ever given out, that of dropped columns included.
    local_timestamps
        Whether Avro calls timestamps without a zone local, as Hudi's Java writer does.
    """

    arrow: pa.Schema
    meta_ids: tuple[int, ...]
    last_column_id: int
    local_timestamps: bool = False

    @classmethod
    def create(cls, schema: pa.Schema) -> TableSchema:
        """Return the schema of a new table.

        Types are normalised (:func:`~hudi_core.schema.arrow_types.normalise_type`); meta columns,
        which rows read from another table still have, are left out. Ids: the meta columns have 1
        to 5, then fields are numbered depth first, each before its children.

        Raises
        ------
        SchemaError
            No columns; a name that occurs twice or differs from another in case only, is kept by
            Hudi, or that Avro cannot hold; a type that cannot be stored.
        """
        require_distinct([field.name for field in schema], "The schema")
        own = [field for field in schema if field.name not in META_COLUMNS]
        names = [field.name for field in own]
        require_free_names(names)
        require_case_distinct(names, names, "The table")
        fields = [normalise_field(field, field.name) for field in own]
        return cls._with_ids(fields, _meta_fields(), {}, 0)

    @classmethod
    def adopt(cls, schema: pa.Schema) -> TableSchema:
        """Return the schema of a new table over existing files.

        As :meth:`create`, but fields keep the ids that they carry.

        Raises
        ------
        SchemaError
            As there; or two fields carry one id.
        """
        cls.create(schema)
        own = [field for field in schema if field.name not in META_COLUMNS]
        carried = {path: number for path, field in walk(own) if (number := field_id(field))}
        fields = [normalise_field(field, field.name) for field in own]
        return cls._with_ids(fields, _meta_fields(), carried, 0)

    @classmethod
    def from_avro(
        cls,
        text: str,
        field_ids: Mapping[str, int] | None = None,
        last_column_id: int | None = None,
    ) -> TableSchema:
        """Return the schema that an Avro schema in JSON describes.

        Each field gets the id of its attribute, else the one ``field_ids`` has under its path
        (another writer dropped the attributes), else a new one.

        Parameters
        ----------
        text
            Avro record with or without the meta columns, as commits and properties hold it.
        field_ids, last_column_id
            As the table's properties keep them.

        Raises
        ------
        SchemaError
            The text is no Avro record schema, a type has no counterpart, or two fields have one id.
        """
        return _from_avro(text, tuple((field_ids or {}).items()), last_column_id or 0)

    @classmethod
    def _with_ids(
        cls,
        data: list[pa.Field],
        meta: list[pa.Field],
        remembered: Mapping[str, int],
        last: int,
    ) -> TableSchema:
        if not data:
            raise SchemaError("The schema has no columns", "Give the table at least one column.")
        ids = FieldIds(remembered, last)
        ids.reserve([*meta, *data])
        ids.reserve_first(meta)
        meta_ids = tuple(field_id(ids.assign(field, field.name)) or 0 for field in meta)
        fields = [ids.assign(field, field.name) for field in data]
        return cls(pa.schema(fields), meta_ids, ids.last)

    def with_fields(self, fields: Sequence[pa.Field]) -> TableSchema:
        """Return this schema with other data columns.

        Columns without an id get a new one.

        Ids of columns that are not among them are not given out again.
        """
        meta = list(self.with_meta())[: len(META_COLUMNS)]
        changed = self._with_ids(list(fields), meta, {}, self.last_column_id)
        return replace(changed, local_timestamps=self.local_timestamps)

    def with_local_timestamps(self) -> TableSchema:
        """This schema with Hudi's own local timestamps, where it has such columns."""
        kinds = (field.type for _, field in walk(self.arrow))
        has_some = any(pt.is_timestamp(kind) and kind.tz is None for kind in kinds)
        return replace(self, local_timestamps=True) if has_some else self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TableSchema):
            return NotImplemented
        return (
            self.meta_ids == other.meta_ids
            and self.last_column_id == other.last_column_id
            and self.local_timestamps == other.local_timestamps
            and bool(self.arrow.equals(other.arrow, check_metadata=True))
        )

    def __hash__(self) -> int:
        return hash((self.last_column_id, tuple(self.field_ids().items())))

    @property
    def names(self) -> list[str]:
        """Names of the data columns."""
        return list(self.arrow.names)

    def field(self, path: str) -> pa.Field | None:
        """Return the data field at a path (``address.city``), or ``None``."""
        return self.fields.get(path)

    @cached_property
    def fields(self) -> Mapping[str, pa.Field]:
        """The data fields by path, depth first, parents first."""
        return dict(walk(self.arrow))

    @cached_property
    def fields_by_id(self) -> Mapping[int, tuple[str, pa.Field]]:
        """Paths and data fields by the ids that they carry."""
        found = [(field_id(field), path, field) for path, field in self.fields.items()]
        return {number: (path, field) for number, path, field in found if number is not None}

    def with_meta(self) -> pa.Schema:
        """Return the data files' schema: meta columns, then data columns."""
        return self._with_meta

    @cached_property
    def _with_meta(self) -> pa.Schema:
        meta = [
            pa.field(name, pa.string(), metadata={FIELD_ID: str(number)})
            for name, number in zip(META_COLUMNS, self.meta_ids, strict=True)
        ]
        return pa.schema([*meta, *self.arrow])

    def with_some_meta(self, names: Collection[str]) -> pa.Schema:
        """Some of the meta columns, in their order, then the data columns."""
        left_out = set(META_COLUMNS).difference(names)
        return pa.schema([field for field in self._with_meta if field.name not in left_out])

    def field_ids(self) -> dict[str, int]:
        """Return the id of every field by path, the meta columns included."""
        return dict(self._field_ids)

    @cached_property
    def _field_ids(self) -> Mapping[str, int]:
        return {path: field_id(field) or 0 for path, field in walk(self.with_meta())}

    def given_up_in(self, later: TableSchema) -> frozenset[str]:
        """Paths that name another field, or none, in a later schema."""
        after = later._field_ids
        return frozenset(
            path for path, number in self._field_ids.items() if after.get(path) != number
        )

    def to_avro(
        self,
        table_name: str,
        with_meta: bool = False,
        meta_columns: Collection[str] = META_COLUMNS,
    ) -> str:
        """Return the Avro schema as JSON, without blanks.

        Parameters
        ----------
        table_name
            Name of the table, from which Hudi derives the record's name and namespace.
        with_meta
            Whether meta columns are part of it: so in data files, not in commits.
        meta_columns
            Which of them then are.
        """
        wanted = (table_name, with_meta, tuple(meta_columns))
        # every file of a write has it
        if wanted not in self._avro:
            self._avro[wanted] = self._to_avro(*wanted)
        return self._avro[wanted]

    @cached_property
    def _avro(self) -> dict[tuple[str, bool, tuple[str, ...]], str]:
        return {}

    def _to_avro(self, table_name: str, with_meta: bool, meta_columns: Collection[str]) -> str:
        name = _avro_name(table_name)
        fields = list(self.arrow)
        if with_meta:
            # Hudi gives its meta columns an empty comment
            count, fields = len(meta_columns), list(self.with_some_meta(meta_columns))
            commented = [f.with_metadata({**f.metadata, DOC: b""}) for f in fields[:count]]
            fields = [*commented, *fields[count:]]
        record: Any = record_to_avro(f"{name}_record", f"hoodie.{name}", fields)
        if self.local_timestamps:
            record = with_local_words(record)
        return json.dumps(record, separators=(",", ":"), ensure_ascii=False)

    def cast_batch(self, batch: pa.RecordBatch, *, widely: bool = False) -> pa.RecordBatch:
        """Return rows with the columns, order and types of the table.

        Columns that may be null and are missing are filled with nulls; meta columns, which rows
        read from a table still have, are dropped, unless the schema names them.

        Parameters
        ----------
        widely
            Whether integers may become the nearest floating-point numbers, and numbers strings.

        Raises
        ------
        SchemaError
            A column the table lacks, a required column that is missing or has nulls, a type or a
            value that does not fit.
        """
        dropped = set(META_COLUMNS).difference(self.names)
        names = [name for name in batch.schema.names if name not in dropped]
        require_distinct(names, "The batch of rows")
        require_known_columns(names, self.names, "The table")
        given = set(names)
        columns = [
            cast_array(batch.column(field.name), field, field.name, widely=widely)
            if field.name in given
            else missing_column(field, batch.num_rows, field.name)
            for field in self.arrow
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.arrow)


@lru_cache(maxsize=64)
def _from_avro(text: str, field_ids: tuple[tuple[str, int], ...], last: int) -> TableSchema:
    """See :meth:`TableSchema.from_avro`.

    A write meets the schema of its table in three commits and the properties; parsed once it makes
    300 calls instead of 1,100.
    """
    fields = record_from_avro(text)
    require_distinct([field.name for field in fields], "The Avro schema")
    meta = {field.name: field for field in _meta_fields()}
    meta |= {field.name: field for field in fields if field.name in META_COLUMNS}
    data = [field for field in fields if field.name not in META_COLUMNS]
    read = TableSchema._with_ids(data, list(meta.values()), dict(field_ids), last)
    return replace(read, local_timestamps=says_local(text))


def require_free_names(new: Iterable[str]) -> None:
    """Refuse new columns with names that Hudi reserves."""
    for name in new:
        if name.lower().startswith(KEPT_PREFIX) and name != IS_DELETED:
            raise SchemaError(
                f"Column {name} has a name that Hudi keeps for itself: it begins with "
                f"{KEPT_PREFIX}",
                "Choose another name.",
                column=name,
            )


def _meta_fields() -> list[pa.Field]:
    return [pa.field(name, pa.string()) for name in META_COLUMNS]


def _avro_name(table_name: str) -> str:
    """Return a table's name as an Avro name, as Hudi does.

    Characters that Avro names cannot hold are replaced.
    """
    name = re.sub(r"[^A-Za-z0-9_]", "__", table_name)
    return re.sub(r"^[0-9]", "__", name)


# --- field ids ------------------------------------------------------------------------------------


class FieldIds:
    """Assigns field ids: the one present, the remembered, or a new one.

    ``remembered`` are ids by path from the table's properties, those of dropped columns included;
    ``last`` is the greatest id ever given.
    """

    def __init__(self, remembered: Mapping[str, int], last: int) -> None:
        self._remembered = dict(remembered)
        self._used: set[int] = set()
        self.last = max([last, *remembered.values()])

    def reserve(self, fields: Sequence[pa.Field]) -> None:
        """Reserve existing ids, before any new one is assigned."""
        for path, field in walk(fields):
            known = self._known(path, field)
            if known is None:
                continue
            if known in self._used:
                raise SchemaError(
                    f"Column {path} has the field id {known} of another column",
                    "Restore hoodie.properties from a backup of the table.",
                    column=path,
                    field_id=known,
                )
            self._used.add(known)
            self.last = max(self.last, known)

    def reserve_first(self, fields: Sequence[pa.Field]) -> None:
        """Assign ids 1, 2, ... to fields without, if these are free."""
        wanted = range(1, len(fields) + 1)
        known = [self._known(path, field) for path, field in walk(fields)]
        if all(each is None for each in known) and self._used.isdisjoint(wanted):
            taken = set(self._remembered.values())
            if taken.isdisjoint(wanted):
                self._remembered.update(zip([field.name for field in fields], wanted, strict=True))
                self._used.update(wanted)
                self.last = max(self.last, len(fields))

    def assign(self, field: pa.Field, path: str) -> pa.Field:
        """Return a field with ids on it and on everything below it."""
        known = self._known(path, field)
        if known is None:
            self.last += 1
            known = self.last
        kind = field.type
        below = children(kind)
        if below:
            kind = with_children(
                kind, [self.assign(child, f"{path}.{suffix}") for suffix, child in below]
            )
        metadata = {**(field.metadata or {}), FIELD_ID: str(known).encode()}
        return pa.field(field.name, kind, field.nullable, metadata)

    def _known(self, path: str, field: pa.Field) -> int | None:
        carried = field_id(field)
        return self._remembered.get(path) if carried is None else carried
