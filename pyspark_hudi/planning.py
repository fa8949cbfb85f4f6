"""Parts of a read: schema, plan, and the scan in tasks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from hudi_core.config.read import ReadConfig
from hudi_core.errors import NotATableError, SchemaError
from hudi_core.read.asked import feed_of, plan_of
from hudi_core.read.changes.feed import FEED_SCHEMA
from hudi_core.read.plan import Scan, Sized, read_schema
from hudi_core.read.scan import file_scan
from hudi_core.read.spark_frame import splits
from hudi_core.services.opening import open_within
from pyspark_hudi.options import SourceOptions

_MENDING: Final = (
    "hudi.sql(spark, 'REFRESH TABLE name') gives the name the place and the columns of its table"
)


@dataclass(frozen=True, slots=True)
class PlannedRead:
    """A read before its first row."""

    scan: Scan[Any]
    tasks: Sequence[tuple[Sized, ...]]


def spark_schema(options: SourceOptions) -> StructType:
    """The columns of a table in Spark's types.

    For a catalog with a note of the read's options.
    """
    opened, _ = open_within(options.paths, options.given)
    # Spark does not say whether it asks for a stream, which has no begin
    is_feed = ReadConfig.asks_for_feed(options.given)
    schema = FEED_SCHEMA if is_feed else read_schema(opened.client, opened.timeline())
    columns = from_arrow_schema(schema)
    return options.noted_in(columns) if options.is_of_catalog else columns


def plan_read(options: SourceOptions, columns: Sequence[str]) -> PlannedRead:
    """Plan the rows of a snapshot or time span, or its changes."""
    try:
        opened, within = open_within(options.paths, options.given)
    except NotATableError as error:
        if not options.is_by_name:
            raise
        raise NotATableError(options.path, error.reason, f"{_MENDING}.") from error
    query = ReadConfig.from_options(options.given)
    if query.is_feed:
        feed = feed_of(opened, query, within)
        return PlannedRead(feed.scan, splits(feed.parts))
    if options.is_by_name:
        known = set(read_schema(opened.client, opened.timeline()).names)
        columns = _present(options, columns, known)
    plan = plan_of(opened, query, within=within)
    return PlannedRead(file_scan(opened.client, plan, columns), splits(plan.files))


def _present(
    options: SourceOptions, columns: Sequence[str], known: Collection[str]
) -> Sequence[str]:
    """The columns of a name that its table has.

    A session of Spark alone may have changed them. A column that ``ALTER TABLE ... ADD COLUMNS``
    added to the name has no value in any row.
    """
    more = [name for name in columns if name not in known]
    if not more:
        return columns
    made_with = set(columns if options.columns is None else options.columns)
    if not made_with.isdisjoint(more) or not made_with <= set(columns):
        raise SchemaError(
            f"The table has no column {more[0]!r}, which its name in the catalog has",
            f"{_MENDING}. There ALTER TABLE changes name and table.",
            column=more[0],
        )
    return [name for name in columns if name in known]
