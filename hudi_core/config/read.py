"""Options of reads, and the typed view made from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from hudi_core.config.foreign import OptionTreatment, foreign_options
from hudi_core.config.kinds import IncrementalFormat, MergeType, QueryType
from hudi_core.config.options import Group, Option, Options
from hudi_core.errors import InvalidInstantTimeError
from hudi_core.model.instant_time import EARLIEST, parse_query_time

__all__ = ["QueryType", "ReadConfig"]


def query_time(text: str) -> str | None:
    """Check a time that a user names.

    See :func:`hudi_core.model.instant_time.parse_query_time`; its zone is that of the table that is
    read.
    """
    if not text:
        return None
    try:
        parse_query_time(text)
    except InvalidInstantTimeError as error:
        raise ValueError(f"{error.reason}; {error.hint}") from error
    return text


def begin_time(text: str) -> str | None:
    """Check the begin of an incremental read.

    ``earliest`` and zeros mean the table's begin.
    """
    if text.lower() == "earliest" or (text and not text.strip("0")):
        return EARLIEST
    return query_time(text)


class ReadConfig(Options, group=Group.READ):
    """Options of a read; an incremental ``end`` of ``None`` is now."""

    query_type: Option[QueryType] = Option(
        "hoodie.datasource.query.type",
        default=QueryType.SNAPSHOT,
        aliases=("hoodie.datasource.view.type",),
    )
    """What is read: the table as it is; its base files alone, as they were before the changes that
    log files hold (``read_optimized``); or the rows that changed in a span of time."""
    merge_type: Option[MergeType] = Option(
        "hoodie.datasource.merge.type", default=MergeType.COMBINED
    )
    """What a snapshot makes of the log files of a MERGE_ON_READ table: `payload_combine` merges
    their rows into those of the base files; `skip_merge` returns every row of both as it is, and
    leaves deletes out of account."""
    merge_memory: Option[int] = Option("hoodie.memory.merge.max.size", default=1 << 30)
    """Bytes of log rows of one file slice, decoded, that a snapshot, a compaction or a write holds
    in memory; where there are more, they go to temporary files on the disk, and are merged part by
    part."""
    spill_folder: Option[str | None] = Option(
        "hoodie.memory.spillable.map.path", default_text="(the system's temporary folder)"
    )
    """Where such files are made. They have no names, and end with what reads them."""
    as_of: Option[str | None] = Option("as.of.instant", parse=query_time, default_text="(now)")
    """Snapshot: the table as it was at this time. 17 or 14 digits, a date, an RFC 3339 date and
    time (of whole seconds: the end of that second), or seconds or milliseconds since the epoch.
    What names no zone is in that of the table's instants. A time before the first commit, or after
    now, is refused."""
    begin: Option[str | None] = Option(
        "hoodie.datasource.read.begin.instanttime",
        parse=begin_time,
        default_text="(required for incremental reads)",
    )
    """Incremental: changes that completed after this time; `earliest` for all of them. The
    requested time of a commit means its completion, here and as the end. Whole seconds mean the
    begin of that second here, and the end of it there."""
    end: Option[str | None] = Option(
        "hoodie.datasource.read.end.instanttime", parse=query_time, default_text="(now)"
    )
    """Incremental: changes that completed at or before this time."""
    incremental_format: Option[IncrementalFormat] = Option(
        "hoodie.datasource.query.incremental.format", default=IncrementalFormat.LATEST_STATE
    )
    """Incremental: what is returned of a changed row. `latest_state`: the row as it is; `cdc`:
    every change as a row of `op`, `ts_ms`, `before` and `after`, deletes too."""
    falls_back: Option[bool] = Option(
        "hoodie.datasource.read.incr.fallback.fulltablescan.enable",
        default=False,
        hudi_default="true",
        reason="Rows that changed again after the span are missing then, so it has to be asked "
        "for; without it the read is refused.",
    )
    """Incremental: whether a read of `latest_state` whose files were cleaned reads the table as it
    is instead, and of it the rows that were written last within the span."""

    ignores_stored_keys: Option[bool] = Option(
        "hoodie.recordkey.virtual.read.enabled", default=False
    )
    """Whether a table that stores its record keys is read as if they were virtual:
    `_hoodie_record_key` is null, and changes are found by keys that are made. So readers try what
    `hudi table rewrite-keys` is about to change."""

    @property
    def is_feed(self) -> bool:
        """Whether changes are read, and not rows."""
        is_incremental = self.query_type is QueryType.INCREMENTAL
        return is_incremental and self.incremental_format is IncrementalFormat.CDC

    @classmethod
    def asks_for_feed(cls, options: Mapping[str, str]) -> bool:
        """Whether options ask for changes; those of a stream have no begin."""
        if cls.query_type.read(options) is QueryType.INCREMENTAL and not cls.begin.is_given(
            options
        ):
            options = {**options, cls.begin.key: EARLIEST}
        return cls.from_options(options).is_feed

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`; an option has to belong to the query type."""
        foreign_options().refuse(options, OptionTreatment.REFUSED_IN_READS)
        config = cls._read(options)
        kind = config.query_type
        if kind is QueryType.INCREMENTAL and config.begin is None:
            raise cls.begin.refused(
                None, "an incremental read needs a begin", "Give a time, or `earliest`."
            )
        is_snapshot = kind is not QueryType.INCREMENTAL
        for key, is_stray in (
            (cls.as_of, not is_snapshot and config.as_of is not None),
            (cls.begin, is_snapshot and config.begin is not None),
            (cls.end, is_snapshot and config.end is not None),
            (
                cls.incremental_format,
                is_snapshot and config.incremental_format is not IncrementalFormat.LATEST_STATE,
            ),
        ):
            if is_stray:
                raise key.refused(
                    options[key.key],
                    f"it has no meaning for {cls.query_type.key}={kind}",
                    f"Drop it, or set {cls.query_type.key}.",
                )
        return config
