"""Options of reads, and the typed view made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.config.foreign import Kind, foreign_options
from hudi_core.config.key import ConfigKey, Group
from hudi_core.config.kinds import QueryType
from hudi_core.errors import InvalidInstantTimeError, InvalidOptionError
from hudi_core.model.instant_time import EARLIEST, parse_query_time

__all__ = [
    "AS_OF",
    "BEGIN",
    "END",
    "INCREMENTAL_FORMAT",
    "KEYS",
    "QUERY_TYPE",
    "QueryType",
    "ReadConfig",
]


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


QUERY_TYPE: Final = ConfigKey(
    key="hoodie.datasource.query.type",
    aliases=("hoodie.datasource.view.type",),
    default=QueryType.SNAPSHOT,
    parse=QueryType,
    choices=tuple(QueryType),
    doc="What is read: the table as it is, or the rows that changed in a span of time.",
    group=Group.READ,
)
AS_OF: Final = ConfigKey(
    key="as.of.instant",
    default=None,
    default_text="(now)",
    parse=query_time,
    doc="Snapshot: the table as it was at this time. 17 or 14 digits, a date, an RFC 3339 date and "
    "time (of whole seconds: the end of that second), or seconds or milliseconds since the epoch. "
    "What names no zone is in that of the table's instants. A time before the first commit, or "
    "after now, is refused.",
    group=Group.READ,
)
BEGIN: Final = ConfigKey(
    key="hoodie.datasource.read.begin.instanttime",
    default=None,
    default_text="(required for incremental reads)",
    parse=begin_time,
    doc="Incremental: changes that completed after this time; `earliest` for all of them. The "
    "requested time of a commit stands for its completion, here and as the end. Whole seconds mean "
    "the begin of that second here, and the end of it there.",
    group=Group.READ,
)
END: Final = ConfigKey(
    key="hoodie.datasource.read.end.instanttime",
    default=None,
    default_text="(now)",
    parse=query_time,
    doc="Incremental: changes that completed at or before this time.",
    group=Group.READ,
)
INCREMENTAL_FORMAT: Final = ConfigKey(
    key="hoodie.datasource.query.incremental.format",
    default="latest_state",
    parse=str,
    choices=("latest_state",),
    doc="Incremental: what is returned of a changed row; its latest state is supported.",
    group=Group.READ,
)

KEYS: Final[tuple[ConfigKey[Any], ...]] = (QUERY_TYPE, AS_OF, BEGIN, END, INCREMENTAL_FORMAT)


@dataclass(frozen=True, slots=True)
class ReadConfig:
    """What a read is asked for.

    Attributes
    ----------
    query_type
        Snapshot or incremental.
    as_of
        Requested time the snapshot is taken at, as the user wrote it; ``None`` for now.
    begin, end
        Completion times, likewise; changes in (begin, end] are read. ``begin`` is given for every
        incremental read, ``end`` is ``None`` for now.
    """

    query_type: QueryType = QueryType.SNAPSHOT
    as_of: str | None = None
    begin: str | None = None
    end: str | None = None

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> ReadConfig:
        """Return the view of a user's options.

        Raises
        ------
        InvalidOptionError
            A value that cannot be used, or an option that does not belong to the query type.
        """
        foreign_options().refuse(options, Kind.REFUSED_IN_READS)
        INCREMENTAL_FORMAT.read(options)
        kind = QUERY_TYPE.read(options)
        config = cls(kind, AS_OF.read(options), BEGIN.read(options), END.read(options))
        if kind is QueryType.INCREMENTAL and config.begin is None:
            raise InvalidOptionError(
                BEGIN.key, None, "an incremental read needs a begin", "Give a time, or `earliest`."
            )
        strays: dict[ConfigKey[Any], bool] = {
            AS_OF: kind is not QueryType.SNAPSHOT and config.as_of is not None,
            BEGIN: kind is QueryType.SNAPSHOT and config.begin is not None,
            END: kind is QueryType.SNAPSHOT and config.end is not None,
        }
        for key, is_stray in strays.items():
            if is_stray:
                raise InvalidOptionError(
                    key.key,
                    options[key.key],
                    f"it has no meaning for {QUERY_TYPE.key}={kind}",
                    f"Drop it, or set {QUERY_TYPE.key}.",
                )
        return config
