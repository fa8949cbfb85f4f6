"""Options of Spark's structured streaming: the sink's and the source's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Self

from hudi_core.config.options import Group, Option, Options
from hudi_core.config.parsers import integer, optional
from hudi_core.config.read import ReadConfig, begin_time
from hudi_core.model.instant_time import EARLIEST

LATEST: Final = "latest"
"""The start offset of a stream that leaves out what is in the table already."""


def identifier(text: str) -> str:
    """Parse the name of a stream."""
    if not text.strip():
        raise ValueError("a stream needs a name")
    return text.strip()


def start_offset(text: str) -> str:
    """Check where a stream begins."""
    found = LATEST if text.lower() == LATEST else begin_time(text)
    if found is None:
        raise ValueError("it is neither earliest, latest nor a time")
    return found


class StreamSinkConfig(Options, group=Group.WRITE):
    """How the batches of a streaming query are written."""

    identifier: Option[str] = Option(
        "hoodie.datasource.write.streaming.checkpoint.identifier",
        default="default_single_writer",
        parse=identifier,
    )
    """Streaming sink: name under which the commit of a batch says its number for Hudi's own sink,
    so that this can go on with the query. Several sinks of one query on one table, in foreachBatch,
    are distinguished by it; else a batch is written once by the query that it belongs to, whatever
    the name. Where Hudi's sink wrote that batch or a later one under the name, it is an error, but
    for the last one under a name that is given, which is taken for written."""
    retry_count: Option[int] = Option("hoodie.datasource.write.streaming.retry.count", default=3)
    """Streaming sink: how often a batch is tried that fails for a reason that may pass, such as
    another writer at work."""
    retry_interval_ms: Option[int] = Option(
        "hoodie.datasource.write.streaming.retry.interval.ms", default=2000, parse=integer(0)
    )
    """Streaming sink: milliseconds before the second try; twice as long before each further one."""
    ignores_failed_batch: Option[bool] = Option(
        "hoodie.datasource.write.streaming.ignore.failed.batch", default=False
    )
    """Streaming sink: whether a batch that cannot be written is left out with a warning, and the
    query goes on: its rows are lost."""
    disables_compaction: Option[bool] = Option(
        "hoodie.datasource.write.streaming.disable.compaction", default=False
    )
    """Streaming sink: whether batches of a MERGE_ON_READ table are followed by no compactions, as
    another process schedules and runs them."""
    compacts: Option[bool] = Option("hoodie.datasource.compaction.async.enable", default=True)
    """Streaming sink: whether compactions that are due run between batches; an explicit true goes
    before hoodie.compact.inline=false. Other writes follow hoodie.compact.inline alone."""


class StreamSourceConfig(Options, group=Group.READ):
    """What a streaming query reads of a table."""

    start: Option[str] = Option(
        "hoodie.datasource.streaming.startOffset",
        default=EARLIEST,
        parse=start_offset,
        default_text="earliest",
    )
    """Streaming source: what a query without a checkpoint begins with. `earliest`: all rows of the
    table. `latest`: what is written from now on. Or a time: changes that completed after it."""
    max_files: Option[int | None] = Option(
        "maxFilesPerTrigger",
        parse=optional(integer(1)),
        default_text="(no limit)",
        hudi_default="(no such option)",
        reason="A query that has fallen behind does not take everything at once.",
    )
    """Streaming source: a batch takes no further commit once its commits wrote this many files."""
    max_bytes: Option[int | None] = Option(
        "maxBytesPerTrigger",
        parse=optional(integer(1)),
        default_text="(no limit)",
        hudi_default="(no such option)",
        reason="As for maxFilesPerTrigger.",
    )
    """Streaming source: the same by the bytes of the files that its commits wrote."""

    is_feed: bool = False

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`; a stream has no begin, end or past state."""
        for key in (ReadConfig.begin, ReadConfig.end, ReadConfig.as_of):
            if key.is_given(options):
                raise key.refused(
                    key.read(options),
                    "a stream goes on for ever",
                    f"Use {cls.start.key} to say where it begins.",
                )
        return cls._read(options, is_feed=ReadConfig.asks_for_feed(options))

    @property
    def is_limited(self) -> bool:
        """Whether a batch takes only some of the commits that wait."""
        return self.max_files is not None or self.max_bytes is not None
