"""Write and read functions that take Hudi's options, unchanged."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any, Literal, get_args

import pyarrow as pa

from hudi_core.config.read import ReadConfig
from hudi_core.config.resolve import given_options, options_as_strings
from hudi_core.config.sync import SyncConfig
from hudi_core.config.validators import ValidatorsConfig
from hudi_core.config.write import WriteConfig
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import chosen_engine, engine_of
from hudi_core.errors import (
    CommitStateUnknownError,
    ConcurrentWriterError,
    InvalidOptionError,
    LockError,
    NotATableError,
)
from hudi_core.model.files import BasePath
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import EARLIEST
from hudi_core.model.result import CommitResult
from hudi_core.read.asked import feed_of, plan_of
from hudi_core.read.query_times import completed_time, requested_time
from hudi_core.read.scan import scan
from hudi_core.read.spark_frame import frame_of_plan, frame_of_scan
from hudi_core.rows.context import WriteContext
from hudi_core.services.create import (
    create_table,
    design_table,
    fitting_rows,
    plan_table,
    replace_table,
)
from hudi_core.services.drop import drop_table
from hudi_core.services.opening import open_table, open_within, table_exists
from hudi_core.storage.location import PathLike, location_of
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.temp_folders import INCOMING_FOLDER
from hudi_core.sync.tool import require_new_syncable
from hudi_core.table import Extras, Options, Table
from hudi_core.table_handle import OpenTable
from hudi_core.write.ending import repetition_of, stored_result
from hudi_core.write.preparing import default_operation
from hudi_core.write.validation import Validator

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SaveMode = Literal["append", "overwrite", "errorifexists", "error", "ignore"]


def write(
    data: Any,
    path: PathLike,
    mode: SaveMode = "append",
    options: Options | None = None,
    engine: Engine | None = None,
    *,
    extra_metadata: Mapping[str, str] | None = None,
    idempotency: tuple[str, int] | None = None,
    validators: Sequence[Validator] = (),
) -> CommitResult | None:
    """Write rows with Hudi's options, creating the table where there is none.

    Parameters
    ----------
    data
        A Spark DataFrame, or anything Arrow can read.
    path
        Base path of the table.
    mode
        ``append`` writes to the table or makes it; ``overwrite`` drops a table first, but for the
        operations that overwrite by themselves and keep the table's history, once all new rows are
        known to fit: a stream is held in memory for that, and a DataFrame, which must not read from
        the dropped table, is evaluated twice; ``errorifexists`` refuses an existing one; ``ignore``
        leaves it alone. Rows that do not fit memory, or that come from the table itself, take its
        place with the operation ``insert_overwrite_table``.
    options
        Hudi's options: ``hoodie.datasource.write.operation`` says what to do (by default
        ``upsert``, and ``insert`` for tables without a record key, unless the rows bring the keys
        they were read with).
    extra_metadata
        Strings by key that the commit keeps.
    idempotency
        Name of an application and number of the write: see
        :class:`~hudi_core.table.Table`. A repetition returns the result of its
        first time, whatever ``mode`` says. A table that is dropped takes what it knew with it.
    validators
        What must hold of the table after the write: see :class:`~hudi_core.table.Table`.

    Returns
    -------
    CommitResult or None
        ``None`` when ``ignore`` met a table.
    """
    path = location_of(path)
    given = options_as_strings(options)
    config = WriteConfig.from_options(given)
    extras = Extras(extra_metadata, idempotency, validators)
    config = replace(config, extras=config.extras.given(extra_metadata, idempotency))
    operation = config.operation if WriteConfig.operation.is_given(given) else None
    overwrites = operation is not None and operation.is_replacing and not operation.deletes
    engine = chosen_engine(engine, data)
    _require_known(mode)
    exists = table_exists(path, given)
    repeated = _repeated(path, given, config) if exists else None
    if repeated is not None:
        return repeated
    if exists and mode in ("errorifexists", "error"):
        raise NotATableError(path, "holds a table already", "Use mode='append', or another path.")
    if exists and mode == "ignore":
        return None
    if operation is not None and operation.deletes and mode != "append":
        raise InvalidOptionError(
            WriteConfig.operation.key,
            operation.option,
            f"rows cannot be deleted with mode={mode!r}",
            "Use 'append'.",
        )
    if (
        exists
        and mode == "overwrite"
        and not overwrites
        and (validators or config.validators.kinds)
    ):
        raise InvalidOptionError(
            ValidatorsConfig.kinds.key,
            ",".join(kind.value for kind in config.validators.kinds),
            "mode='overwrite' drops the table before the rows of the new one are validated",
            "Use the operation insert_overwrite_table.",
        )
    if not exists or (mode == "overwrite" and not overwrites):
        data = engine.take(data)  # its columns are asked for, and its rows after that
        _require_syncable(path, engine.schema_of(data), given)
    if exists and mode == "overwrite" and not overwrites:
        new, schema = design_table(path, engine.schema_of(data), given)
        context = WriteContext(
            BasePath(path),
            StorageOptions.from_options(given),
            new,
            schema,
            config,
            EARLIEST,
        )
        # or neither table would be left
        operation = operation or default_operation(new, [])
        data = fitting_rows(data, engine, context, operation)
        opened = replace_table(path, engine.schema_of(data), given, keep=INCOMING_FOLDER)
    else:
        made = None if exists else _created(path, engine.schema_of(data), given, mode)
        if made is None:
            return Table.open(path, given).perform(data, operation, engine, extras)
        opened = made
    table = Table(opened, given)
    # of keys that rows bring from another table, a new one knows nothing
    operation = operation or default_operation(table.config, [])
    try:
        return table.perform(data, operation, engine, extras, is_new=True)
    except CommitStateUnknownError:
        raise
    except BaseException:
        if all(instant.action is Action.ROLLBACK for instant in table.timeline.instants):
            # made by this call alone, and still empty; unless others found it meanwhile
            with contextlib.suppress(ConcurrentWriterError, LockError):
                drop_table(path, given)
        raise


def _require_known(mode: str) -> None:
    modes = get_args(SaveMode)
    if mode not in modes:
        raise InvalidOptionError(
            "mode", mode, "there is no such mode", f"Use one of {', '.join(modes)}."
        )


def _require_syncable(path: str, schema: pa.Schema, options: dict[str, str]) -> None:
    """Refuse syncs by the table as it is to be.

    A refusal that came later would find the former table gone.
    """
    if SyncConfig.wanted(options):
        require_new_syncable(plan_table(path, schema, options).table, options)


def _repeated(path: str, given: Mapping[str, str], config: WriteConfig) -> CommitResult | None:
    """Result of the earlier write that this one repeats, if any."""
    if config.extras.idempotency is None:
        return None
    opened = open_table(path, given)
    first = repetition_of(opened, opened.timeline(), config.extras.idempotency)
    return None if first is None else stored_result(opened, first, config.operation.recorded)


def _created(
    path: str, schema: pa.Schema, options: dict[str, str], mode: SaveMode
) -> OpenTable | None:
    """Create a table; ``None`` if another writer was faster.

    The other's table can be written, then.
    """
    try:
        return create_table(path, schema, options)
    except NotATableError:
        if mode != "append" or not table_exists(path, options):
            raise
        return None


def read(spark: SparkSession | None, path: PathLike, options: Options | None = None) -> Any:
    """Read a table with Hudi's options.

    Parameters
    ----------
    spark
        The session to read with; ``None`` for an Arrow table.
    path
        Base path of the table; or a path within it, which may have wildcards: then only what lies
        there is read.
    options
        ``as.of.instant``, or ``hoodie.datasource.query.type=incremental`` with
        ``hoodie.datasource.read.begin.instanttime`` and ``...end.instanttime``; then
        ``hoodie.datasource.query.incremental.format=cdc`` reads the change feed.

    Returns
    -------
    DataFrame or pyarrow.Table
    """
    given = options_as_strings(_resolved_times(given_options(options)))
    opened, within = open_within([location_of(path)], given)
    if spark is not None:
        # without a metadata table, its tasks list the folders
        opened = opened.on(engine_of(spark))
    query = ReadConfig.from_options(given)
    if query.is_feed:
        feed = feed_of(opened, query, within)
        return feed.to_arrow().read_all() if spark is None else frame_of_scan(spark, feed)
    plan = plan_of(opened, query, within=within)
    if spark is not None:
        return frame_of_plan(spark, opened.client, plan)
    return scan(opened.client, plan).read_all()


def read_metadata(
    spark: SparkSession | None,
    path: PathLike,
    partition: str = "files",
    options: Options | None = None,
) -> Any:
    """Read one partition of a table's metadata table.

    Its rows come by way of the driver.

    Parameters
    ----------
    spark
        The session to read with; ``None`` for an Arrow table.
    path
        Base path of the table.
    partition
        Such as ``files`` or ``column_stats``: see :meth:`hudi_core.table.Table.metadata`.
    options
        Those of the store.

    Returns
    -------
    DataFrame or pyarrow.Table

    Raises
    ------
    HudiError
        See :meth:`hudi_core.table.Table.metadata`.
    """
    found = Table.open(path, options).metadata(partition)
    return found if spark is None else spark.createDataFrame(found)


def _resolved_times(options: Options) -> Options:
    """Return read options with instants and times resolved to times."""
    requested = {ReadConfig.as_of.key: requested_time}
    return {
        key: requested.get(key, completed_time)(value)
        if isinstance(value, Instant | date)
        else value
        for key, value in options.items()
    }
