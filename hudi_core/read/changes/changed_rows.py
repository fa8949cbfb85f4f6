"""Reads of what commits changed, in each form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import pyarrow as pa

from hudi_core.errors import InvalidOptionError
from hudi_core.read.changes.feed import OPERATION, TIMESTAMP, FeedPart
from hudi_core.read.changes.incremental import IncrementalQuery
from hudi_core.read.filters import RowFilter
from hudi_core.read.plan import ScanPlan
from hudi_core.read.spark_frame import frame_of_plan, frame_of_scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Images = Literal["json", "struct"]
"""Forms of the rows in a change feed."""


class ChangedRows(NamedTuple):
    """Rows that commits of a window changed."""

    query: IncrementalQuery
    window: tuple[str | None, str | None]
    columns: Sequence[str] | None
    row_filter: RowFilter | None

    def batches(self, *, deletes: bool) -> pa.RecordBatchReader:
        """The rows as a stream, those that are gone if asked for."""
        if deletes:
            return self.query.net(*self.window, self.columns, self.row_filter).to_arrow()
        return self.query.to_arrow(*self.window, self.columns, self.row_filter)

    def rows(self, spark: SparkSession | None, *, deletes: bool) -> Any:
        """The same as a table or, with a session, as a DataFrame."""
        if spark is None:
            return self.batches(deletes=deletes).read_all()
        if deletes:
            net = self.query.net(*self.window, self.columns, self.row_filter)
            return frame_of_scan(spark, net)
        plan = self.query.plan(*self.window, self.row_filter)
        return frame_of_plan(spark, self.query.client, plan, self.columns, self.row_filter)

    def feed(self, images: Images) -> ScanPlan[FeedPart]:
        """Every change, with the row before and after it."""
        if images not in get_args(Images):
            raise InvalidOptionError(
                "images", images, "there is no such form", f"Use one of {get_args(Images)}."
            )
        as_text = images == "json"
        return self.query.feed(*self.window, self.columns, self.row_filter, as_text=as_text)

    def changes(self, spark: SparkSession | None, images: Images) -> Any:
        """The feed as a table, in order, or as a DataFrame."""
        if spark is not None:
            return frame_of_scan(spark, self.feed(images))
        # of a row that a commit replaced, what is deleted comes before what is inserted
        in_order = [(TIMESTAMP, "ascending"), (OPERATION, "ascending")]
        return self.feed(images).to_arrow().read_all().sort_by(in_order)
