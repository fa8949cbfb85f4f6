"""Batches of Spark's structured streaming, each written once.

Spark repeats the last batch of a query that died. The commit of a batch keeps the query's id, which
Spark keeps in the checkpoint, and the number of the batch, as the application and the version of an
idempotent write; so a batch that is repeated is not written again.
"""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hudi_core.config.commit_keys import CommitConfig
from hudi_core.config.compaction import CompactionConfig
from hudi_core.config.resolve import options_as_strings
from hudi_core.config.streaming import StreamSinkConfig
from hudi_core.doors.datasource import write
from hudi_core.engine.choice import is_spark_frame
from hudi_core.errors import (
    HudiError,
    InvalidOptionError,
    MetaSyncError,
    MetaSyncWarning,
    SchemaError,
)
from hudi_core.model.extra_metadata import Idempotency
from hudi_core.model.instant import Instant
from hudi_core.model.result import CommitResult
from hudi_core.services.opening import open_table, table_exists
from hudi_core.storage.location import PathLike, location_of
from hudi_core.table import Options
from hudi_core.table_handle import OpenTable
from hudi_core.txn.carried_metadata import (
    IDEMPOTENCY_KEY,
    DoneWrites,
    decode,
    done_writes,
    is_accounted,
    repeated,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUERY_ID: Final = "sql.streaming.queryId"
"""What Spark calls the id of the query that a thread or task works for."""
_RUN_ID: Final = "spark.jobGroup.id"
"""Where Spark keeps the id of one run of a query, which a restart changes."""
SINK_CHECKPOINT: Final = "_hudi_streaming_sink_checkpoint"
"""Key of extra metadata under which Hudi's own sink keeps its last batch, by identifier."""
_APPLICATION: Final = "spark-stream:"
"""What the names of our queries begin with, among applications of idempotent writes."""


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """One batch of a streaming query.

    ``query`` is the same after each restart from the checkpoint; ``number`` grows by one. ``sink``
    is empty for an only sink.
    """

    query: str
    number: int
    sink: str = ""

    @property
    def idempotency(self) -> Idempotency:
        """What makes its write one that is done once."""
        name = f"{self.query}:{self.sink}" if self.sink else self.query
        return Idempotency(f"{_APPLICATION}{name}", self.number)


@dataclass(frozen=True, slots=True)
class _Turn:
    """The sink that writes a batch in one run of a query."""

    run: str | None
    number: int
    sink: object


_turns: Final[dict[tuple[str, str], _Turn]] = {}
"""The last turn of each application at each path, in this process."""
_turns_lock: Final = threading.Lock()


def stream_sink(path: PathLike, options: Options | None = None) -> Callable[[DataFrame, int], None]:
    """Function for ``foreachBatch`` that writes every batch once.

    Batches are written as :func:`hudi_core.write` writes DataFrames: on Spark's executors. Each of
    several sinks of one query on one table needs a name of its own,
    ``hoodie.datasource.write.streaming.checkpoint.identifier``, which stays the same for as long as
    the query's checkpoint.

    Parameters
    ----------
    path
        Base path of the table; the first batch makes it, where there is none.
    options
        Hudi's options, as for :func:`hudi_core.write`, and those of its streaming sink:
        ``hoodie.datasource.write.streaming.*``.

    Raises
    ------
    InvalidOptionError
        An option that cannot be used, or one that makes a single write idempotent. Or, from the
        function, another sink of the query has written this batch under the same name.
    """
    given = checked_sink_options(options_as_strings(options))
    where = location_of(path)
    identifier = StreamSinkConfig.identifier
    name = identifier.read(given) if identifier.is_given(given) else ""
    sink = object()

    def write_batch_of_query(frame: DataFrame, number: int) -> None:
        if not is_spark_frame(frame):
            raise SchemaError(
                f"A batch of a stream is a DataFrame, not {type(frame).__name__}",
                "Give the function to foreachBatch(...).",
            )
        context = frame.sparkSession.sparkContext
        query = context.getLocalProperty(QUERY_ID)
        if not query:
            raise InvalidOptionError(
                QUERY_ID,
                None,
                "no streaming query is at work here",
                "Give the function to foreachBatch(...), or write with hudi_core.write.",
            )
        batch = StreamBatch(query, number, name)
        with _turn(where, batch, _Turn(context.getLocalProperty(_RUN_ID), number, sink)):
            write_batch(lambda: frame, where, given, batch)

    return write_batch_of_query


@contextmanager
def _turn(path: str, batch: StreamBatch, turn: _Turn) -> Iterator[None]:
    """Have a batch written by one sink alone.

    Another sink's write of it would be taken for a repetition, and its rows be lost. A batch that
    failed may be written by another one, and so may one that a restarted query repeats.
    """
    key = path, batch.idempotency.application
    with _turns_lock:
        before = _turns.get(key)
        if (
            before is not None
            and before.sink is not turn.sink
            and (before.run, before.number) == (turn.run, turn.number)
        ):
            raise InvalidOptionError(
                StreamSinkConfig.identifier.key,
                batch.sink or None,
                f"another sink of the query has written batch {batch.number} to {path} under "
                "that name, so that the rows of this one would be lost",
                "Give each sink of a query a name of its own.",
            )
        _turns[key] = turn
    try:
        yield
    except BaseException:
        with _turns_lock:
            if _turns.get(key) is turn:
                del _turns[key]
        raise


def checked_sink_options(options: dict[str, str]) -> dict[str, str]:
    """Options of a sink, none of which makes a single write idempotent."""
    StreamSinkConfig.from_options(options)
    for key in (CommitConfig.application, CommitConfig.version):
        if key.is_given(options):
            raise InvalidOptionError(
                key.key,
                key.read(options),
                "each batch of a stream has a number of its own",
                "Drop it: batches are written once in any case.",
            )
    return options


def written_before(path: str, options: dict[str, str], batch: StreamBatch) -> bool:
    """Whether a batch is in the table already.

    A batch that Hudi's own sink wrote under the same identifier, or a later one, is an error unless
    it is certain that this is the same query.
    """
    if not table_exists(path, options):
        return False
    opened = open_table(path, options)
    done: DoneWrites = {}
    if is_accounted(opened.client):
        done = done_writes(opened.client, opened.timeline())
    if repeated(done, batch.idempotency) is not None:
        return True
    if batch.idempotency.application in done:
        return False
    return _written_by_hudi(opened, options, batch)


def write_batch(
    rows: Callable[[], Any], path: str, options: dict[str, str], batch: StreamBatch
) -> CommitResult | None:
    """Write the rows of a batch, unless that was done before.

    ``rows`` is called for each try, and not at all where there is nothing to write. ``None`` for a
    batch that was written before, or that failed and is left out; otherwise errors of
    :func:`hudi_core.write` are raised after as many tries as the options say.
    """
    config = StreamSinkConfig.from_options(options)
    wait_s = config.retry_interval_ms / 1000
    for remaining in reversed(range(config.retry_count)):
        try:
            return _write_once(rows, path, options, batch)
        except MetaSyncError as error:
            # the batch is complete
            if not config.ignores_failed_batch or not isinstance(error.result, CommitResult):
                raise
            warnings.warn(str(error), MetaSyncWarning, stacklevel=2)
            return error.result
        except HudiError as error:
            if error.retryable and remaining:
                time.sleep(wait_s)
                wait_s *= 2
                continue
            if not config.ignores_failed_batch:
                raise
            warnings.warn(
                f"Batch {batch.number} of the query {batch.query} was left out: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
            break
    return None


def _write_once(
    rows: Callable[[], Any], path: str, options: dict[str, str], batch: StreamBatch
) -> CommitResult | None:
    if written_before(path, options, batch):
        return None
    name = StreamSinkConfig.identifier.read(options)
    done = batch.idempotency
    if StreamSinkConfig.disables_compaction.read(options):
        kept_off = (
            CompactionConfig.inline,
            CompactionConfig.schedule_inline,
            CompactionConfig.logs_inline,
        )
        options = {**options, **{key.key: "false" for key in kept_off}}
    elif StreamSinkConfig.compacts.is_given(options):
        compacts, inline = StreamSinkConfig.compacts.read(options), CompactionConfig.inline
        if compacts or not inline.is_given(options):
            options = {**options, inline.key: str(compacts).lower()}
    return write(
        rows(),
        path,
        options=options,
        # as Hudi's sink keeps it
        extra_metadata={SINK_CHECKPOINT: json.dumps({name: str(batch.number)})},
        idempotency=(done.application, done.version),
    )


def _written_by_hudi(opened: OpenTable, options: dict[str, str], batch: StreamBatch) -> bool:
    """Whether Hudi's own sink wrote a new query's batch."""
    config = StreamSinkConfig.from_options(options)
    last = _last_of_hudi(opened, config.identifier)
    if last is None or batch.number > last:
        return False
    if batch.number == last and StreamSinkConfig.identifier.is_given(options):
        return True
    raise InvalidOptionError(
        StreamSinkConfig.identifier.key,
        config.identifier,
        f"Hudi's sink wrote batches up to {last} under that name, and this is batch {batch.number}",
        "Give a new query a name of its own. A query that goes on from the checkpoint of Hudi's "
        "sink names the identifier it had there.",
    )


def _last_of_hudi(opened: OpenTable, identifier: str) -> int | None:
    """Last batch under an identifier, where Hudi's own sink wrote it."""
    for instant in reversed(opened.timeline().completed_writes()):
        kept = opened.client.active.read_notes(instant).extra_metadata
        try:
            number = json.loads(kept.get(SINK_CHECKPOINT, "{}")).get(identifier)
            if number is None:
                continue
            last = int(number)
        except (ValueError, TypeError, AttributeError, RecursionError):
            continue  # of no use to Hudi's sink either
        return None if _is_ours(opened, instant, kept) else last
    return None


def _is_ours(opened: OpenTable, instant: Instant, kept: Mapping[str, str]) -> bool:
    """Whether a query of ours wrote this very commit."""
    entries = decode(kept.get(IDEMPOTENCY_KEY, "{}"), opened.client.active.path(instant))
    return any(
        name.startswith(_APPLICATION) and one.instant == instant.requested_time
        for name, one in entries.items()
    )
