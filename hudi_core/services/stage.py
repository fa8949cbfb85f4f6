"""Stages: writes that are checked, then published or dropped.

A stage keeps its rows as they came, and the files that a write of them would leave: those show the
table as it would be. Publication is an ordinary write of the same rows, which makes those files
again under the instant that it takes then: files, and the rows in them, name their instant, and one
that was taken when the rows were staged would change what readers as of a time in between see. So
nothing of a stage is on the timeline before its publication, no recovery meets it, and locks,
markers, indexes and the table's format have nothing new to learn. That the files come out as they
were checked is ensured: a stage is refused where what it builds on has changed since.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hudi_core.engine.choice import is_spark_frame
from hudi_core.errors import (
    InvalidOptionError,
    StorageError,
    UnknownStageError,
)
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.operation import DELETE_PARTITION, Operation, operation_named
from hudi_core.model.protocols import TimelineView
from hudi_core.model.result import CommitResult, ProposedCommit
from hudi_core.read.filters import RowFilter
from hudi_core.read.proposed import ProposedQuery
from hudi_core.schema.absence import absence_field
from hudi_core.schema.table_schema import TableSchema
from hudi_core.services.stage_record import (
    STAGE_KEY,
    PublishedError,
    StageRecord,
    delete_expired_stages,
    delete_stage,
    kept_options,
    require_as_checked,
    require_publishable,
    require_unpublished,
    stage_folder,
    stage_records,
)
from hudi_core.table_handle import OpenTable
from hudi_core.txn.carried_metadata import Done
from hudi_core.txn.schema_step import last_write
from hudi_core.write.client import WriteClient
from hudi_core.write.ending import stored_result
from hudi_core.write.previewing import preview
from hudi_core.write.validation import Validator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hudi_core.read.dataset import HudiDataset
from collections.abc import Iterator

import pyarrow.fs as pafs

from hudi_core.engine.base import TaskContext
from hudi_core.engine.choice import frame_of_batches
from hudi_core.errors import DataFileError
from hudi_core.model.files import BasePath
from hudi_core.storage.data_files import data_filesystem
from hudi_core.storage.disk import sync_file
from hudi_core.storage.location import require_shared
from hudi_core.storage.options import StorageOptions

_log = logging.getLogger(__name__)

Publish = Callable[["Stage", Any, Sequence[Validator]], CommitResult]
"""Writes the rows of a stage that it is given."""


@dataclass(frozen=True)
class Stage:
    """Rows that wait for their publication.

    Made by :meth:`hudi_core.table.Table.stage`, and found again by ``Table.stages``.
    """

    record: StageRecord
    _table: Callable[[], OpenTable]
    _publish: Publish

    def __repr__(self) -> str:
        done, until = self.commit, self.record.expires.isoformat(timespec="seconds")
        return (
            f"Stage({self.id!r}, {self.operation!r}, inserted={done.inserted}, "
            f"updated={done.updated}, deleted={done.deleted}, expires={until})"
        )

    @property
    def id(self) -> str:
        """Its name."""
        return self.record.id

    @property
    def operation(self) -> str:
        """Name of the method of ``Table`` that publication amounts to."""
        return self.record.operation.method

    @property
    def created(self) -> datetime:
        """When the rows were staged."""
        return self.record.created

    @property
    def expires(self) -> datetime:
        """Until when they can be published."""
        return self.record.expires

    @cached_property
    def commit(self) -> ProposedCommit:
        """What publication commits; the files are those of the stage."""
        return ProposedCommit.of(self.record.metadata)

    def to_arrow(
        self,
        columns: str | Sequence[str] | None = None,
        filter: RowFilter | None = None,  # noqa: A002 - as Table's
    ) -> pa.Table:
        """Return the rows of the table as it would be after publication."""
        names = [columns] if isinstance(columns, str) else columns
        return self._query().to_table(names, filter)

    def count(self, filter: RowFilter | None = None) -> int:  # noqa: A002
        """Return the number of rows that the table would have."""
        return self._query().count(filter)

    def scan(self, filter: RowFilter | None = None) -> HudiDataset:  # noqa: A002
        """Return the rows of :meth:`to_arrow` as a lazy dataset.

        DuckDB, polars and Arrow itself query it.
        """
        from hudi_core.read.dataset import HudiDataset  # noqa: PLC0415 - pyarrow.dataset's pandas

        return HudiDataset(self._query(), None, filter)

    def publish(
        self, spark: SparkSession | None = None, *, validators: Sequence[Validator] = ()
    ) -> CommitResult:
        """Write the rows, as one instant, and delete the stage.

        A publication that died, or whose outcome is unknown, may be done again: what was published
        is not published twice.

        The stage stays after every error, but ``UnknownStageError`` (it was published or dropped).
        Without ``spark`` this process writes the rows; it also does where some rows lack columns
        that others have.

        ``validators`` run on the table after it, as do those of the options that the table was
        opened with; those of the stage ran when its rows were staged, and are not stored with it.
        """
        rows = _rows_of(self._table(), self.record)
        names = self.record.rows
        in_process = spark is None or absence_field(rows.reader(())) is not None
        data = rows.reader(names) if in_process else rows.frame(spark, names)
        return self._publish(self, data, validators)

    def drop(self) -> None:
        """Delete the stage; nothing of it was ever in the table."""
        delete_stage(self._table().client.storage, self.id)

    def _query(self) -> ProposedQuery:
        opened = self._table()
        opened = opened.seeing(opened.client.timeline())
        seen = opened.timeline()
        record = StageRecord.load(opened.client.storage, self.id)
        require_publishable(opened, seen, record)
        text, config = record.metadata.schema_json or record.columns, opened.client.config
        schema = TableSchema.from_avro(text, None, config.last_column_id)
        return ProposedQuery(opened.client, opened.lister(), seen, record.metadata, schema)


def staged_operation(name: str) -> Operation:
    """The operation of a name, which takes rows."""
    operation = operation_named(name)
    if operation is DELETE_PARTITION:
        reason, hint = (
            "it takes no rows",
            "Delete partitions at once; their files stay for a while.",
        )
        raise InvalidOptionError("operation", name, reason, hint)
    return operation


def stage_write(
    writer: WriteClient, data: Any, operation: Operation, options: Mapping[str, str]
) -> StageRecord:
    """Stage rows.

    Of ``options``, those that the publication needs are kept, and no secrets. Where a validator
    refuses the table as it would be, nothing of the stage is left.
    """
    opened = writer.table.as_stored().afresh
    writer.table = table = opened.seeing(opened.client.timeline())
    client, config = table.client, writer.config
    client.require_writable()
    delete_expired_stages(client.storage, config.services.stage_hours_retained)
    # of two at the same time each has a folder
    instant = client.clock.next_time(client.timeline())
    stage = f"{instant}-{secrets.randbelow(10**8):08d}"
    folder, schema = stage_folder(stage), writer.engine.schema_of(data)
    lacking = absence_field(data)
    schema = schema if lacking is None else schema.append(lacking)
    rows = StageRows(client.base_path, client.storage_options, folder, schema, config.fsync)
    try:
        names = tuple(writer.engine.map_input(data, rows.save, 0))
        # the rows are evaluated once: what is checked is what is published
        is_frame = is_spark_frame(data)
        again = rows.frame(data.sparkSession, names) if is_frame else rows.reader(names)
        found = preview(writer, again, operation, instant, f"{folder}/data")
        created = datetime.now(UTC)
        record = StageRecord(
            stage,
            operation,
            kept_options(options),
            config.extras.metadata,
            created,
            created + timedelta(hours=config.services.stage_hours_retained),
            last_write(found.began),
            client.schema_text_at(found.began),
            names,
            schema,
            found.metadata,
        )
        record.put(client.storage)
    except BaseException:
        try:
            delete_stage(client.storage, stage)
        except StorageError:
            _log.warning("stage %s of %s stays behind", stage, client.base_path, exc_info=True)
        raise
    client.storage.delete_tree(f"{folder}/data/.stage")  # spilled by tasks
    return record


def stages_of(table: OpenTable) -> tuple[StageRecord, ...]:
    """The stages of a table that can be published, the oldest first.

    Logs damaged ones.
    """
    return tuple(one for one in stage_records(table.client.storage) if not one.is_expired())


def publish_stage(writer: WriteClient, record: StageRecord, data: Any) -> CommitResult:
    """Write the rows of a stage and delete it; see :meth:`Stage.publish`."""
    storage = writer.table.client.storage
    # one that was deleted since is named as such, not by a file that is missing
    record = StageRecord.load(storage, record.id)
    extras = writer.config.extras
    kept = {**extras.metadata, **record.extra_metadata, STAGE_KEY: record.id}
    writer.config = replace(writer.config, extras=replace(extras, metadata=kept))
    hours = writer.config.services.stage_hours_retained

    def guard(table: OpenTable, seen: TimelineView, mine: CommitMetadata | None) -> None:
        nonlocal record
        require_publishable(table, seen, record)
        if mine is None:
            # no process deletes it for its age while it is being published
            record = record.extended(storage, datetime.now(UTC) + timedelta(hours=hours))
            return
        require_as_checked(storage.root, record, mine)
        if not record.is_stored(storage):
            # perhaps after the timeline was read
            now = table.afresh
            require_unpublished(now, now.seeing(now.client.timeline()).timeline(), record)
            raise UnknownStageError(storage.root, record.id)

    writer.guard = guard
    try:
        result = writer.write(data, record.operation)
    except PublishedError as done:
        found = Done(1, done.instant)
        result = stored_result(writer.table, found, record.operation.recorded)
    try:
        delete_stage(storage, record.id)
    except StorageError:
        _log.warning("stage %s stays behind, published", record.id, exc_info=True)
    return result


def find_stage(table: OpenTable, stage: str) -> StageRecord:
    """The stage of a name."""
    record = StageRecord.load(table.client.storage, stage)
    if record.is_expired():
        raise UnknownStageError(table.client.base_path, stage)
    return record


def _rows_of(table: OpenTable, record: StageRecord) -> StageRows:
    client = table.client
    return StageRows(client.base_path, client.storage_options, record.folder, record.schema)


# --- rows of a stage ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StageRows:
    """Where the rows of a stage are; tasks get it."""

    base_path: BasePath
    storage_options: StorageOptions
    folder: str
    schema: pa.Schema
    fsync: bool = True

    def save(self, task: TaskContext, batches: Iterator[pa.RecordBatch]) -> Iterator[str]:
        """Write the rows of one input task; yields the file's name.

        ``ConfigError`` means that the task runs on a machine that does not have the table.
        """
        require_shared(self.base_path)
        filesystem, path = self._path(f"{task.task}-{task.attempt}.arrow")
        is_local = isinstance(filesystem, pafs.LocalFileSystem)
        if is_local:
            filesystem.create_dir(path.rsplit("/", 1)[0], recursive=True)
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with (
            filesystem.open_output_stream(path) as stream,
            pa.ipc.new_file(stream, self.schema, options=options) as writer,
        ):
            for batch in batches:
                writer.write_batch(batch)
        if is_local and self.fsync:
            sync_file(path)
        yield path.rpartition("/")[2]

    def reader(self, names: Sequence[str]) -> pa.RecordBatchReader:
        """The rows of some files, in their order."""
        return pa.RecordBatchReader.from_batches(self.schema, self.read(names))

    def frame(self, spark: Any, names: Sequence[str]) -> Any:
        """The rows of some files as a DataFrame, a task for each."""
        return frame_of_batches(spark, [(name,) for name in names], self.read, self.schema)

    def read(self, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of some files, in their order."""
        for name in names:
            filesystem, path = self._path(name)
            try:
                with filesystem.open_input_file(path) as source:
                    file = pa.ipc.open_file(source)
                    for number in range(file.num_record_batches):
                        yield file.get_batch(number)
            except (OSError, pa.ArrowInvalid) as error:
                raise DataFileError(self.base_path, str(error).split("\n", 1)[0]) from error

    def _path(self, name: str) -> tuple[pafs.FileSystem, str]:
        filesystem, root = data_filesystem(self.base_path, self.storage_options)
        return filesystem, f"{root}/{self.folder}/rows/{name}"
