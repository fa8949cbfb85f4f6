"""The write side of a table: one method per operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, overload

from hudi_core.config.key import GivenOptions
from hudi_core.config.resolve import text_options
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import engine_for
from hudi_core.model.commit import WriteOperation
from hudi_core.model.dry_run import DryRun
from hudi_core.model.result import CommitResult
from hudi_core.services.opening import open_table
from hudi_core.table_handle import OpenTable
from hudi_core.txn.table_lock import table_lock
from hudi_core.write.client import WriteClient
from hudi_core.write.keyless import default_operation
from hudi_core.write.replacing import PartitionLike

Options = Mapping[str, object]
"""Hudi options: texts, numbers, truth values, lists of names."""
Extras = tuple[Mapping[str, str] | None, tuple[str, int] | None]
"""The arguments ``extra_metadata`` and ``idempotency`` of an operation."""


class RowOperations:
    """What changes the rows of one open table.

    Every operation takes rows (a Spark DataFrame, or anything Arrow can read), options for this
    call alone, and the engine to run on. Further arguments of each:

    ``extra_metadata``
        Texts by key that the commit keeps; readers of the timeline find them there.
    ``idempotency``
        Name of an application and number of the write, as in ``("orders", 17)``. Where the
        application has written that number before, or a greater one, nothing is written, and the
        result of that write is returned with ``is_repetition``. So a write whose outcome is unknown
        can be made again as it is. A write that was rolled back counts as not made.
    ``dry_run``
        Whether only to say which files would be touched: nothing is written, and no lock is taken.
        Late rows and values that do not fit are only found by the write itself. On Spark it brings
        keys, partitions and ordering values to the driver.
    """

    def __init__(self, opened: OpenTable, options: Mapping[str, str]) -> None:
        self._opened = opened
        self._options = GivenOptions(options)

    @property
    def path(self) -> str:
        """Base path of the table."""
        return self._opened.client.base_path

    @overload
    def insert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[False] = False,
    ) -> CommitResult: ...
    @overload
    def insert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[True],
    ) -> DryRun: ...
    def insert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> CommitResult | DryRun:
        """Add rows; small files are filled up first. Keys are not looked up, unless
        ``hoodie.datasource.insert.dup.policy`` says so."""
        extras = extra_metadata, idempotency
        return self._write(data, WriteOperation.INSERT, options, engine, extras, dry_run=dry_run)

    @overload
    def bulk_insert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[False] = False,
    ) -> CommitResult: ...
    @overload
    def bulk_insert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[True],
    ) -> DryRun: ...
    def bulk_insert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> CommitResult | DryRun:
        """Add rows to new files only: the fastest way in."""
        extras = extra_metadata, idempotency
        return self._write(
            data, WriteOperation.BULK_INSERT, options, engine, extras, dry_run=dry_run
        )

    @overload
    def upsert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[False] = False,
    ) -> CommitResult: ...
    @overload
    def upsert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[True],
    ) -> DryRun: ...
    def upsert(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> CommitResult | DryRun:
        """Add rows whose keys are new and replace the others, as the ordering field says.

        Rows may lack columns where ``hoodie.table.partial.update.mode=KEEP_VALUES``: updated rows
        keep their values, new rows get nulls.
        """
        extras = extra_metadata, idempotency
        return self._write(data, WriteOperation.UPSERT, options, engine, extras, dry_run=dry_run)

    @overload
    def delete(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[False] = False,
    ) -> CommitResult: ...
    @overload
    def delete(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[True],
    ) -> DryRun: ...
    def delete(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> CommitResult | DryRun:
        """Remove the rows with the keys in ``data``, which needs just the columns of key and
        partition."""
        extras = extra_metadata, idempotency
        return self._write(data, WriteOperation.DELETE, options, engine, extras, dry_run=dry_run)

    @overload
    def insert_overwrite(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[False] = False,
    ) -> CommitResult: ...
    @overload
    def insert_overwrite(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[True],
    ) -> DryRun: ...
    def insert_overwrite(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> CommitResult | DryRun:
        """Add rows and drop what the partitions they belong to held before; other partitions
        stay."""
        extras = extra_metadata, idempotency
        return self._write(
            data, WriteOperation.INSERT_OVERWRITE, options, engine, extras, dry_run=dry_run
        )

    @overload
    def insert_overwrite_table(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[False] = False,
    ) -> CommitResult: ...
    @overload
    def insert_overwrite_table(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[True],
    ) -> DryRun: ...
    def insert_overwrite_table(
        self,
        data: Any,
        *,
        options: Options | None = None,
        engine: Engine | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> CommitResult | DryRun:
        """Add rows and drop everything the table held before; its history stays."""
        extras = extra_metadata, idempotency
        return self._write(
            data, WriteOperation.INSERT_OVERWRITE_TABLE, options, engine, extras, dry_run=dry_run
        )

    @overload
    def delete_partitions(
        self,
        partitions: Sequence[PartitionLike],
        *,
        options: Options | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[False] = False,
    ) -> CommitResult: ...
    @overload
    def delete_partitions(
        self,
        partitions: Sequence[PartitionLike],
        *,
        options: Options | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: Literal[True],
    ) -> DryRun: ...
    def delete_partitions(
        self,
        partitions: Sequence[PartitionLike],
        *,
        options: Options | None = None,
        extra_metadata: Mapping[str, str] | None = None,
        idempotency: tuple[str, int] | None = None,
        dry_run: bool = False,
    ) -> CommitResult | DryRun:
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
        writer = self._writer(options, engine_for(None), (extra_metadata, idempotency))
        if dry_run:
            return writer.rehearse_deletion(partitions)
        return writer.delete_partitions(partitions)

    def perform(
        self,
        data: Any,
        operation: WriteOperation | None,
        engine: Engine,
        extras: Extras = (None, None),
    ) -> CommitResult:
        """Do what the options of the table ask for; ``None`` for what fits the table best."""
        writer = self._writer(None, engine, extras)
        if operation is None:
            data = engine.take(data)
            operation = default_operation(self._opened.client.config, engine.schema_of(data).names)
        if operation is not WriteOperation.DELETE_PARTITION:
            return writer.write(engine.take(data), operation)
        named = writer.config.partitions_to_delete
        return writer.delete_partitions(named or writer.partitions_of(data))

    def _write(
        self,
        data: Any,
        operation: WriteOperation,
        options: Options | None,
        engine: Engine | None,
        extras: Extras,
        *,
        dry_run: bool,
    ) -> CommitResult | DryRun:
        engine = engine or engine_for(data)
        data = engine.take(data)
        writer = self._writer(options, engine, extras)
        return writer.rehearse(data, operation) if dry_run else writer.write(data, operation)

    def _writer(self, options: Options | None, engine: Engine, extras: Extras) -> WriteClient:
        merged = self._options | text_options(options or {})
        opened = open_table(self.path, merged)
        config = WriteConfig.from_options(merged)
        config = replace(config, extras=config.extras.given(*extras))
        self._opened = opened
        return WriteClient(opened, table_lock(opened, config), engine, config)
