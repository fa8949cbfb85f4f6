"""Writes of a table's rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_core.config.resolve import options_as_strings
from hudi_core.config.schema import SchemaConfig
from hudi_core.config.sql import SqlLimits
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import chosen_engine, engine_for
from hudi_core.errors import InvalidOptionError, SchemaError
from hudi_core.model.dry_run import DryRun
from hudi_core.model.operation import (
    BULK_INSERT,
    DELETE,
    DELETE_PARTITION,
    INSERT,
    INSERT_OVERWRITE,
    INSERT_OVERWRITE_TABLE,
    UPSERT,
    Operation,
    operation_named,
)
from hudi_core.model.result import CommitResult
from hudi_core.schema.absence import absences, without_absence
from hudi_core.schema.casting import without_views
from hudi_core.services.after_commit import InlineServices
from hudi_core.services.due_clustering import cluster_after_commit
from hudi_core.services.opening import open_table
from hudi_core.services.partition_ttl import expire_after_commit
from hudi_core.sync.after_commit import require_syncable
from hudi_core.table.arguments import NO_EXTRAS, Extras, Options
from hudi_core.table.merging import TableMerger
from hudi_core.table.syncing import TableSyncing
from hudi_core.txn.table_lock import table_lock
from hudi_core.write.auto_record_keys import default_operation
from hudi_core.write.changes import Changes, ChangeWhere
from hudi_core.write.client import WriteClient
from hudi_core.write.expressions import Values, Where
from hudi_core.write.merge_changes import MergeChanges
from hudi_core.write.previewing import dry_run, dry_run_of_deletion
from hudi_core.write.replacing import PartitionLike
from hudi_core.write.validation import Validation, Validator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class TableWriting(TableSyncing):
    """A table whose rows are changed."""

    def insert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Add rows; small files are filled up first.

        Keys are not looked up, unless ``hoodie.datasource.insert.dup.policy`` asks for it.
        """
        return self._write(
            INSERT, data, options, engine, Extras(extra_metadata, idempotency, validators)
        )

    def bulk_insert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Add rows to new files only: the fastest way in."""
        return self._write(
            BULK_INSERT, data, options, engine, Extras(extra_metadata, idempotency, validators)
        )

    def upsert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Insert rows with new keys, and update the others by ordering field.

        Rows may lack columns, each its own, where
        ``hoodie.table.partial.update.mode=KEEP_VALUES``: updated rows keep their values, new rows
        get nulls.
        """
        return self._write(
            UPSERT, data, options, engine, Extras(extra_metadata, idempotency, validators)
        )

    def delete(
        self,
        data: Any = None,
        *,
        where: Where | None = None,
        spark: SparkSession | None = None,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Remove rows by the keys in ``data``, or by a condition.

        Parameters
        ----------
        data
            Rows; just their columns of key and partition are needed.
        where
            Instead of them, the condition: an Arrow expression, conditions as of read filters, or a
            text in Spark's SQL.
        spark
            The session that looks for the rows of ``where``; without one this process does.

        Raises
        ------
        InvalidOptionError
            Both of ``data`` and ``where`` are given, or none.
        """
        extras = Extras(extra_metadata, idempotency, validators)
        if (data is None) == (where is None):
            raise InvalidOptionError(
                "where",
                where,
                "a delete needs either rows or a condition",
                "Give one of data and where; to remove all rows, where='true'.",
            )
        if where is None:
            return self._write(DELETE, data, options, engine, extras)
        changes = ChangeWhere(where, None)
        return self.change(changes, chosen_engine(engine, spark=spark), options, extras)

    def update(
        self,
        set: Values,  # noqa: A002 - SQL's word
        where: Where | None = None,
        *,
        spark: SparkSession | None = None,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Set columns of the rows that a condition accepts, in one commit.

        The ordering field has no say in it: a row is changed whatever its value is or becomes. A
        row whose partition columns change moves.

        Parameters
        ----------
        set
            Values by column: a text is an expression in Spark's SQL over the columns, such as
            ``"price * 2"`` or ``"'sold'"``; an Arrow expression is one as well; any other Python
            value stands for itself.
        where
            See :meth:`delete`; ``None`` for all rows.
        spark
            The session that looks for the rows and changes them; without one this process does.

        Raises
        ------
        SchemaError
            A column is part of the record key, or unknown; a value does not fit. Nothing is
            written.
        CommitConflictError
            Another write changed a file group with such rows. Nothing of this one is visible.
        """
        extras = Extras(extra_metadata, idempotency, validators)
        changes = ChangeWhere(where, dict(set))
        return self.change(changes, chosen_engine(engine, spark=spark), options, extras)

    def merge(
        self,
        source: Any,
        on: str | Sequence[str],
        *,
        source_alias: str = "source",
        target_alias: str = "target",
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> TableMerger:
        """Begin a merge of rows; its clauses follow, then ``execute()``.

        Parameters
        ----------
        source
            A Spark DataFrame, or anything Arrow can read.
        on
            Names of columns that are equal, or a condition in Spark's SQL, such as
            ``"target.id = source.id"``.
        source_alias, target_alias
            What qualifies columns of the source and of the table.
        """
        engine = chosen_engine(engine, source)
        given = self._options | options_as_strings(options)
        source = _whole(engine.take(source, self._columns), SchemaConfig.from_options(given))
        merge = MergeChanges(source, engine.schema_of(source), on, source_alias, target_alias)
        extras = Extras(extra_metadata, idempotency, validators)
        return TableMerger(merge, lambda changes: self.change(changes, engine, options, extras))

    def change(
        self,
        changes: Changes,
        engine: Engine,
        options: Options | None = None,
        extras: Extras = NO_EXTRAS,
    ) -> CommitResult:
        """Run a conditional write, as :meth:`update`, :meth:`delete` and :meth:`merge` do."""
        writer = self._writer(options, engine, extras)
        return self._done(writer, lambda: writer.change(changes))

    def insert_overwrite(
        self,
        data: Any,
        *,
        partitions: Sequence[PartitionLike] = (),
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Replace the rows of the partitions that the rows belong to.

        Other partitions stay.

        Parameters
        ----------
        partitions
            Partitions that are replaced too, even if no row belongs to them: paths, or mappings of
            the partition columns to their values.
        """
        extras = Extras(extra_metadata, idempotency, validators)
        return self._write(INSERT_OVERWRITE, data, options, engine, extras, replaces=partitions)

    def insert_overwrite_table(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Replace all rows of the table; its history stays."""
        return self._write(
            INSERT_OVERWRITE_TABLE,
            data,
            options,
            engine,
            Extras(extra_metadata, idempotency, validators),
        )

    def delete_partitions(
        self,
        partitions: Sequence[PartitionLike],
        *,
        options: Options | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        validators: Sequence[Validator] = (),
    ) -> CommitResult:
        """Drop all rows of some partitions.

        Parameters
        ----------
        partitions
            Paths of partitions, or mappings of the partition columns to their values.

        Raises
        ------
        UnknownPartitionError
            One of them holds no rows; nothing is deleted.
        """
        writer = self._writer(
            options, engine_for(None), Extras(extra_metadata, idempotency, validators)
        )
        return self._done(writer, lambda: writer.delete_partitions(partitions))

    def plan(
        self,
        operation: str,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
    ) -> DryRun:
        """What an operation would do; without lock, without writing anything.

        Late rows and values that do not fit are only found by the write itself. On Spark it brings
        keys, partitions and ordering values to the driver.

        Parameters
        ----------
        operation
            Name of the method, such as ``"upsert"``.
        data
            Its rows; of ``"delete_partitions"`` the partitions.
        """
        wanted = operation_named(operation)
        if wanted is DELETE_PARTITION:
            writer = self._writer(options, engine_for(None))
            writer.table = writer.table.as_stored()
            return dry_run_of_deletion(writer, data)
        engine = chosen_engine(engine, data)
        data = engine.take(data, self._columns)
        writer = self._writer(options, engine)
        writer.table = writer.table.as_stored()
        return dry_run(writer, data, wanted)

    def perform(
        self,
        data: Any,
        operation: Operation | None,
        engine: Engine,
        extras: Extras = NO_EXTRAS,
        *,
        is_new: bool = False,
    ) -> CommitResult:
        """Run the operation in the options; ``None`` picks the best match.

        Parameters
        ----------
        is_new
            Whether the table was made for these rows.
        """
        writer = self._writer(None, engine, extras)
        writer.is_new = is_new
        if operation is None:
            data = engine.take(data, self._columns)
            operation = default_operation(self._opened.client.config, engine.schema_of(data).names)
        if operation is not DELETE_PARTITION:
            wanted = operation
            return self._done(
                writer, lambda: writer.write(engine.take(data, self._columns), wanted)
            )
        named = writer.config.partitions_to_delete or writer.partitions_of(data)
        return self._done(writer, lambda: writer.delete_partitions(named))

    def _write(
        self,
        operation: Operation,
        data: Any,
        options: Options | None,
        engine: Engine | None,
        extras: Extras,
        *,
        replaces: Sequence[PartitionLike] = (),
    ) -> CommitResult:
        engine = chosen_engine(engine, data)
        data = engine.take(data, self._columns)
        writer = self._writer(options, engine, extras)
        writer.replaces = replaces
        return self._done(writer, lambda: writer.write(data, operation))

    def _done(self, writer: WriteClient, write: Callable[[], CommitResult]) -> CommitResult:
        """The result of a write; later reads use the writer's table."""
        try:
            result = write()
        finally:
            self._opened = writer.table
        expire_after_commit(writer)
        self._opened = writer.table
        cluster_after_commit(writer.table, writer.lock, writer.config, writer.engine)
        return self._synced(result)

    def _columns(self) -> pa.Schema:
        return self.schema

    def _writer(
        self, options: Options | None, engine: Engine, extras: Extras = NO_EXTRAS
    ) -> WriteClient:
        merged, opened = self._options | options_as_strings(options), self._opened
        if merged != opened.client.options:
            opened = open_table(self._open_path, merged, opened.client.config.raw)
        config = WriteConfig.from_options(merged)
        config = replace(config, extras=config.extras.given(*extras[:2]))
        require_syncable(opened, merged)
        services = InlineServices(config.services)
        lock, validation = (
            table_lock(opened, config),
            Validation(config.validators, extras.validators, SqlLimits.from_options(merged)),
        )
        writer = WriteClient(opened, lock, engine, config, services)
        writer.validation = None if validation.is_empty else validation
        return writer


def _whole(source: Any, how: SchemaConfig) -> Any:
    """The rows of a merge's source, in types that can be joined.

    Its clauses are about columns that every row has.

    Raises
    ------
    SchemaError
        One lacks a column, and null is not to be taken for it.
    """
    absent = absences(source)
    if absent and not how.fill_missing:
        row = absent[0].row
        paths = [one.path for one in absent if one.row == row]
        raise SchemaError(
            f"{row} of the source lacks the column {', '.join(map(repr, paths))}, which other rows "
            "have",
            f"Give it to every row, with None where there is no value; or set "
            f"{SchemaConfig.fill_missing.key}=true, by which it is null.",
            columns=paths,
        )
    if isinstance(source, pa.RecordBatchReader):
        source = source.read_all()
    return without_views(without_absence(source)) if isinstance(source, pa.Table) else source
