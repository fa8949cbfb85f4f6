"""Writes of a table's rows, at once or in stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hudi_core.config.schema import SchemaConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import chosen_engine, engine_for
from hudi_core.errors import InvalidOptionError
from hudi_core.model.dry_run import DryRun
from hudi_core.model.operation import DELETE, DELETE_PARTITION, Operation, operation_named
from hudi_core.model.result import CommitResult
from hudi_core.services.stage import Stage, publish_stage, stage_write, staged_operation
from hudi_core.services.stage_record import StageRecord
from hudi_core.table.arguments import Extras
from hudi_core.table.merging import TableMerger
from hudi_core.table.session import TableCall, TableSession
from hudi_core.write.conditional.changes import Changes, ChangeWhere
from hudi_core.write.conditional.expressions import Values, Where
from hudi_core.write.conditional.merge_changes import MergeChanges, whole_source
from hudi_core.write.preparing import default_operation
from hudi_core.write.previewing import dry_run, dry_run_of_deletion
from hudi_core.write.replacing import PartitionLike
from hudi_core.write.validation import Validator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(
    call: TableCall, operation: Operation, data: Any, replaces: Sequence[PartitionLike] = ()
) -> CommitResult:
    """Run an operation; it may replace the partitions of ``replaces``, too."""
    engine = chosen_engine(call.engine, data)
    data = call.take(engine, data)
    writer = call.writer(engine)
    writer.replaces = replaces
    return call.session.done(writer, lambda: writer.write(data, operation))


def delete(
    call: TableCall, data: Any, where: Where | None, spark: SparkSession | None
) -> CommitResult:
    """Delete rows by their keys, or by a condition."""
    if (data is None) == (where is None):
        raise InvalidOptionError(
            "where",
            where,
            "a delete needs either rows or a condition",
            "Give one of data and where; to remove all rows, where='true'.",
        )
    if where is None:
        return write(call, DELETE, data)
    return change(call, ChangeWhere(where, None), chosen_engine(call.engine, spark=spark))


def update(
    call: TableCall, values: Values, where: Where | None, spark: SparkSession | None
) -> CommitResult:
    """Set values of the rows that a condition accepts."""
    return change(call, ChangeWhere(where, dict(values)), chosen_engine(call.engine, spark=spark))


def change(call: TableCall, changes: Changes, engine: Engine) -> CommitResult:
    """Run a conditional write."""
    writer = call.writer(engine)
    return call.session.done(writer, lambda: writer.change(changes))


def merger(
    call: TableCall, source: Any, on: str | Sequence[str], source_alias: str, target_alias: str
) -> TableMerger:
    """A merge without clauses."""
    engine = chosen_engine(call.engine, source)
    source = whole_source(call.take(engine, source), SchemaConfig.from_options(call.merged))
    merge = MergeChanges(source, engine.schema_of(source), on, source_alias, target_alias)
    return TableMerger(merge, lambda changes: change(call, changes, engine))


def delete_partitions(call: TableCall, partitions: Sequence[PartitionLike]) -> CommitResult:
    """Delete all rows of some partitions."""
    writer = call.writer(engine_for(None))
    return call.session.done(writer, lambda: writer.delete_partitions(partitions))


def plan(call: TableCall, operation: str, data: Any) -> DryRun:
    """What an operation would do."""
    wanted = operation_named(operation)
    if wanted is DELETE_PARTITION:
        writer = call.writer(engine_for(None))
        writer.table = writer.table.as_stored()
        return dry_run_of_deletion(writer, data)
    engine = chosen_engine(call.engine, data)
    data = call.take(engine, data)
    writer = call.writer(engine)
    writer.table = writer.table.as_stored()
    return dry_run(writer, data, wanted)


def perform(
    call: TableCall, data: Any, wanted: Operation | None, engine: Engine, *, is_new: bool
) -> CommitResult:
    """Run an operation, or the one that fits options and rows."""
    writer = call.writer(engine)
    writer.is_new = is_new
    if wanted is None:
        data, config = call.take(engine, data), call.session.opened.client.config
        wanted = default_operation(config, engine.schema_of(data).names)
    if wanted is DELETE_PARTITION:
        named = writer.config.partitions_to_delete or writer.partitions_of(data)
        return call.session.done(writer, lambda: writer.delete_partitions(named))
    operation = wanted
    return call.session.done(writer, lambda: writer.write(call.take(engine, data), operation))


def stage(call: TableCall, data: Any, operation: str) -> Stage:
    """Stage a write of rows."""
    wanted, engine = staged_operation(operation), chosen_engine(call.engine, data)
    data = call.take(engine, data)
    return stage_of(call.session, stage_write(call.writer(engine), data, wanted, call.merged))


def stage_of(session: TableSession, record: StageRecord) -> Stage:
    """The stage of a record, which the table publishes."""

    def publish(stage: Stage, data: Any, validators: Sequence[Validator]) -> CommitResult:
        engine, record = engine_for(data), stage.record
        data = engine.take(data)
        writer = session.writer(record.options, engine, Extras(None, None, validators))
        return session.done(writer, lambda: publish_stage(writer, record, data))

    return Stage(record, lambda: session.opened.as_stored().afresh, publish)
