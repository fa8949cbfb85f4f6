"""Rows that other writers appended, brought into the table.

They are written as any rows are: by an upsert, or by an insert where the table makes keys of its
own. The commit says whose files it takes in, and the state that names its files names these no
more: no reader of the format sees a state without the rows, or one that has them twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.footer import read_columns
from hudi_core.config.merge_rules import MergeRules, merge_rules
from hudi_core.config.write import WriteConfig
from hudi_core.engine.choice import engine_for
from hudi_core.errors import ForeignCommitError, RecordKeyError, SchemaError, TableServiceError
from hudi_core.keygen import key_generator
from hudi_core.model.capability import Capability
from hudi_core.model.dry_run import DryRun
from hudi_core.model.extra_metadata import TakenIn
from hudi_core.model.found_table import FoundFile, FoundTable
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.operation import INSERT, UPSERT
from hudi_core.plugin.fenced import pending_publications
from hudi_core.rows.combine import existing_is_newer
from hudi_core.rows.deciding import order_values
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY, TableSchema
from hudi_core.services.adoption.rows import columns_of_file, rows_of_files
from hudi_core.services.after_commit import InlineServices
from hudi_core.services.mending.foreign_changes import ForeignChanges, found_table
from hudi_core.table_handle import OpenTable
from hudi_core.txn.recovery.recover import recover
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import table_lock
from hudi_core.write.client import WriteClient
from hudi_core.write.previewing import dry_run

_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class TakeIn:
    """Rows of other writers that are written into the table.

    ``rows`` were appended by others; ``inserted`` and ``updated`` of them have keys that the table
    did not have, and had; ``deleted`` counts rows of the table that go, as one of them marks its
    key as deleted. ``instant`` is a requested time; ``None`` for a plan.
    """

    rows: int
    inserted: int
    updated: int
    deleted: int
    instant: InstantTime | None = None


def finish_earlier(table: OpenTable, config: WriteConfig) -> None:
    """Publish what a dead writer left between its two steps.

    ``CommitStateUnknownError`` means that it builds on a state of the format that others have
    changed since.
    """
    try:
        pending = pending_publications(table.fenced())
    except ForeignCommitError:
        return  # nothing of Hudi's is left in the format that it could be published in
    if pending:
        with table_lock(table, config).held():
            recover(TableState.load(table), config)


def take_in(
    table: OpenTable,
    config: WriteConfig,
    changes: Sequence[ForeignChanges],
    *,
    is_planned: bool = False,
) -> TakeIn:
    """Write rows that others appended into the table.

    With ``is_planned`` all is checked and counted the same, and nothing written. Errors leave
    nothing changed.

    Refused are deletes or rewrites that others made as well, rows without a key or with that of
    another row of theirs, and stored rows with such a key that are later by the ordering column.
    """
    rows, keys = _checked(table, config, changes)
    operation = UPSERT if table.client.config.record_key_fields else INSERT
    writer = WriteClient(
        table,
        table_lock(table, config),
        engine_for(None),
        replace(config, extras=replace(config.extras, takes_in=rows.files())),
        InlineServices(config.services),
    )
    plan = dry_run(writer, rows.read(), operation)
    if keys is not None and plan.updated:
        rows.require_latest(keys, plan)
    if is_planned:
        return TakeIn(rows.count, plan.inserted, plan.updated, plan.deleted)
    done = writer.write(rows.read(), operation)
    time = done.instant.requested_time
    return TakeIn(rows.count, done.inserted, done.updated, done.deleted, time)


def require_fit(table: OpenTable, config: WriteConfig, changes: Sequence[ForeignChanges]) -> None:
    """Refuse what :func:`take_in` would, whatever rows the table has."""
    _checked(table, config, changes)


def _checked(
    table: OpenTable, config: WriteConfig, changes: Sequence[ForeignChanges]
) -> tuple[_AppendedRows, pa.Table | None]:
    _require_appends(table, changes)
    rows = _AppendedRows.of(table, changes, is_global=config.index.index_type.is_global)
    return rows, rows.checked_keys()


def can_take_in(table: OpenTable, changes: Sequence[ForeignChanges]) -> bool:
    """Whether rows were appended alone, where they can be taken in."""
    is_able = Capability.TAKE_IN in table.host.capabilities and table.client.files.is_plain
    return is_able and all(one.is_append for one in changes if one.changes_rows)


def _require_appends(table: OpenTable, changes: Sequence[ForeignChanges]) -> None:
    table.host.require(Capability.TAKE_IN)
    if not table.client.files.is_plain:
        raise TableServiceError(
            f"The table at {table.client.base_path} has its files below storage paths, where those "
            "of other writers are not looked for",
            "Read the rows with the other writer and upsert them after `--discard`.",
        )
    for one in changes:
        if not one.is_append:
            raise TableServiceError(
                f"In the {one.table_format} metadata of {table.client.base_path} rows were not "
                f"only appended since Hudi's last state: {one.text}",
                "Nothing was changed. What was deleted or rewritten is only known to the other "
                "writer: take its commits back there, or make the same change here after "
                "`--discard`, which takes them out.",
                table_format=one.table_format,
                added_rows=one.added_rows,
                removed_rows=one.removed_rows,
                deleted_rows=one.deleted_rows,
            )


@dataclass(frozen=True)
class _AppendedRows:
    """Rows of files that others have brought.

    ``found`` is the table of each format, with these files alone. ``is_global`` means that a key is
    one of the whole table, and not of its partition.
    """

    table: OpenTable
    changes: tuple[ForeignChanges, ...]
    found: tuple[FoundTable, ...]
    schema: pa.Schema
    count: int
    is_global: bool

    @classmethod
    def of(
        cls, table: OpenTable, changes: Sequence[ForeignChanges], *, is_global: bool
    ) -> _AppendedRows:
        by_name = {one.host.name: one for one in table.each()}
        found = tuple(found_table(by_name[one.table_format], one.added) for one in changes)
        try:
            schema = pa.unify_schemas([_own_columns(one.schema) for one in found])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SchemaError(
                f"The formats have rows of others with one column in two types: {error}",
                "Nothing was changed. Have one of the writers take its rows back.",
            ) from error
        count = sum(one.added_rows or 0 for one in changes)
        return cls(table, tuple(changes), found, schema, count, is_global)

    def files(self) -> dict[str, TakenIn]:
        """The files, by format."""
        return {one.table_format: TakenIn(one.version, one.added) for one in self.changes}

    def read(self) -> pa.RecordBatchReader:
        """The rows, file by file."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        opened = self.table.client.files.open
        for one in self.found:
            for batch in rows_of_files(opened, one.files, one.schema):
                columns = [
                    batch.column(field.name).cast(field.type)
                    if field.name in batch.schema.names
                    else pa.nulls(batch.num_rows, field.type)
                    for field in self.schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def checked_keys(self) -> pa.Table | None:
        """Keys, partition paths and ordering columns of all rows.

        ``None`` in a table without record keys.
        """
        client = self.table.client
        config, rules = client.config, merge_rules(client.config)
        order = {name.partition(".")[0] for name in rules.order}
        tops = {name.partition(".")[0] for name in config.partition_fields} | order
        tops |= {name.partition(".")[0] for name in config.record_key_fields}
        required = {one.name for one in client.schema.arrow if not one.nullable}
        for one in self.found:
            for file in one.files:
                self._require_columns(one, file, tops | required)
        if not config.record_key_fields:
            return None
        generator = key_generator(config, client.schema)
        wanted = pa.schema([one for one in client.schema.arrow if one.name in tops])
        parts = []
        for batch in self._batches():
            columns = [batch.column(one.name).cast(one.type) for one in wanted]
            cast = pa.RecordBatch.from_arrays(columns, schema=wanted)
            keys, paths = generator.record_keys(cast), generator.partition_paths(cast)
            made = {RECORD_KEY: keys, "path": paths.cast(pa.string())}
            parts.append(pa.table(made | {name: cast.column(name) for name in order}))
        found = pa.concat_tables(parts)
        self._require_distinct(found)
        return found

    def _require_columns(self, found: FoundTable, file: FoundFile, needed: set[str]) -> None:
        held = columns_of_file(self.table.client.files.open, file, found.schema)
        missing = sorted(needed - held)
        if missing:
            raise SchemaError(
                f"{file.path}, which another writer appended, has no column {', '.join(missing)}, "
                "which rows of the table need",
                "Nothing was changed. Have that writer append the rows with it, or take its "
                "commits out (`--discard`).",
                columns=missing,
                path=file.path,
            )

    def _require_distinct(self, keys: pa.Table) -> None:
        by = [RECORD_KEY] if self.is_global else ["path", RECORD_KEY]
        counts = keys.group_by(by).aggregate([([], "count_all")])
        repeated = counts.filter(pc.greater(counts["count_all"], 1))
        if repeated.num_rows:
            raise RecordKeyError(
                f"{repeated.num_rows:,} record keys are of several of the rows that another writer "
                f"appended, such as {_some(repeated[RECORD_KEY])}: which of them is the row is not "
                "known",
                "Nothing was changed. Have that writer delete all but one row of each key, or take "
                "its commits out (`--discard`).",
                keys=repeated.num_rows,
            )

    def require_latest(self, keys: pa.Table, plan: DryRun) -> None:
        """Refuse rows that an upsert would drop as too late."""
        rules = merge_rules(self.table.client.config)
        if not rules.stored_order:
            return
        tops = list(dict.fromkeys(name.partition(".")[0] for name in rules.stored_order))
        late: list[Any] = []
        for file in plan.files:
            if file.path is not None and file.updated:
                stored = read_columns(self.table.client, file.path, [RECORD_KEY, *tops])
                here = pc.equal(keys["path"], str(file.partition_path))
                late += _late(stored, keys if self.is_global else keys.filter(here), rules)
        if late:
            names = ", ".join(rules.stored_order)
            raise RecordKeyError(
                f"{len(late):,} of the rows that another writer appended have the key of a row "
                f"that is later by {names}, such as {_some(late)}: an upsert would drop them",
                "Nothing was changed. Have that writer append them with greater values, or take "
                "its commits out (`--discard`).",
                keys=len(late),
            )


def _own_columns(schema: pa.Schema) -> pa.Schema:
    """The columns but Hudi's own, in the types that tables have."""
    own = pa.schema([field for field in schema if field.name not in META_COLUMNS])
    return pa.schema([field.remove_metadata() for field in TableSchema.adopt(own).arrow])


def _late(stored: pa.Table, keys: pa.Table, rules: MergeRules) -> list[Any]:
    """Keys of incoming rows that are older than the stored ones."""
    places = pc.index_in(stored[RECORD_KEY].cast(pa.string()), keys[RECORD_KEY].combine_chunks())
    met = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
    had = stored.take(pa.array(met))
    given = keys.take(places.take(pa.array(met)))
    kinds = {field.name: field.type for field in given.schema}
    had = had.select([name for name in had.column_names if name in kinds])
    had = had.cast(pa.schema([(name, kinds[name]) for name in had.column_names]))
    fields = rules.stored_order
    newer = existing_is_newer(order_values(had, fields, rules), order_values(given, fields, rules))
    return [*given[RECORD_KEY].filter(newer).to_pylist()]


def _some(keys: Any) -> str:
    values = keys.to_pylist() if isinstance(keys, pa.ChunkedArray) else keys
    return ", ".join(map(repr, values[:_SHOWN]))
