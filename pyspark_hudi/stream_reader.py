"""Reading the changes of a table in batches of a streaming query.

An offset is a completion time, as with Hudi: up to it everything has been read. So a batch is an
incremental read, and Spark, which keeps the offsets in its checkpoint, plans the same batch again
after a restart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Final

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from hudi_core.config.kinds import QueryType
from hudi_core.config.read import ReadConfig
from hudi_core.config.streaming import StreamSourceConfig
from hudi_core.engine.choice import arrow_schema
from hudi_core.engine.plain_errors import plain_errors
from hudi_core.read.plan import Scan, Sized
from hudi_core.read.waiting import first_offset, latest_time, next_offset
from hudi_core.services.opening import open_within
from hudi_core.table_handle import OpenTable
from pyspark_hudi.options import SourceOptions
from pyspark_hudi.planning import plan_read
from pyspark_hudi.reader import fitted
from pyspark_hudi.shipping import Shipped

_OFFSET: Final = "offsetCommitTime"
"""What Hudi's source calls the completion time in an offset."""


class BatchPartition(InputPartition):
    """The files of one task, or their changes, with a scan."""

    def __init__(self, scan: Scan[Any], parts: tuple[Sized, ...]) -> None:
        super().__init__((scan, parts))


class HudiStreamReader(Shipped, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows one table on the driver while the query runs."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._columns = schema.fieldNames()
        self._schema = arrow_schema(schema)
        self._last: str | None = None

    def initialOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's
        """Where a query without a checkpoint begins."""
        with plain_errors():
            opened = self._opened()
            return {_OFFSET: first_offset(opened.client, opened.timeline(), self._config.start)}

    def latestOffset(self, start: dict[str, str], limit: ReadLimit) -> dict[str, str]:  # noqa: N802 - Spark's
        """Where the next batch ends; the start where nothing waits."""
        with plain_errors():
            opened = self._opened()
            config = StreamSourceConfig() if isinstance(limit, ReadAllAvailable) else self._config
            end = next_offset(opened.client, opened.timeline(), start[_OFFSET], config, self._last)
            return {_OFFSET: end}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        """The limit of a batch, as the options say."""
        with plain_errors():
            files, size = self._config.max_files, self._config.max_bytes
        if files is not None:
            return ReadMaxFiles(files)
        return ReadAllAvailable() if size is None else ReadMaxBytes(size)

    def reportLatestOffset(self) -> dict[str, str]:  # noqa: N802 - Spark's
        """The last commit of the table."""
        with plain_errors():
            opened = self._opened()
            return {_OFFSET: latest_time(opened.client, opened.timeline())}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        """Stop at what is there now."""
        with plain_errors():
            opened = self._opened()
            self._last = latest_time(opened.client, opened.timeline())

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """The files of each task of a batch."""
        if start == end:
            return []
        begin = {
            ReadConfig.query_type.key: QueryType.INCREMENTAL.value,
            ReadConfig.begin.key: start[_OFFSET],
            ReadConfig.end.key: end[_OFFSET],
        }
        with plain_errors():
            plan = plan_read(self._options.with_options(begin), self._columns)
            return [BatchPartition(plan.scan, parts) for parts in plan.tasks]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the rows of one task's files as Arrow batches."""
        scan, parts = partition.value
        with plain_errors():
            for batch in scan.read(parts):
                yield fitted(batch, self._schema)

    def shipped(self) -> dict[str, Any]:
        """State that a task needs: no options."""
        return {"_schema": self._schema}

    @cached_property
    def _config(self) -> StreamSourceConfig:
        # not when the reader is made: of what fails there, Spark loses the message
        return StreamSourceConfig.from_options(self._options.given)

    def _opened(self) -> OpenTable:
        opened, _ = open_within(self._options.paths, self._options.given)
        return opened
