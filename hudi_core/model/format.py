"""Values that a table format returns, and roles it fills (RFC-93)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol, runtime_checkable

from hudi_core.model.client import MetaClientView
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.file_index import FileIndex
from hudi_core.model.instant import Action, Instant
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.model.protocols import TimelineView

INSTANT_KEY = "hudi.instant"
"""What a format records per instant: the requested time."""
ACTION_KEY = "hudi.action"
"""What a format records per instant: the action as which it completed."""
OPERATION_KEY = "hudi.operation"
"""What a format records per instant: the write operation, where the action has one."""
COMPLETION_TIME_KEY = "hudi.completion-time"
"""What a format records per instant: the completion time."""
WATERMARK_KEY = "hudi.completed-watermark"
"""What a format records before it forgets instants: all up to this completion time are complete."""
PARENT_KEY = "hudi.format-parent"
"""Key of a commit's extra metadata: the version of the format that the commit builds on."""


@dataclass(frozen=True, slots=True)
class FormatCommit:
    """The receipt of a ``complete_*`` hook: the format holds the instant now.

    Attributes
    ----------
    version
        The format's own id of the state that holds the instant, never empty: the id of a
        snapshot, the number of a version, for the native format the completion time.
    location
        Absolute path or URI of the format's metadata, which the table keeps as
        ``hoodie.table.format.<name>.location``; ``None`` where the format has no place of its own.
    details
        Whatever else a user may want to see, as text.
    """

    version: str
    location: str | None = None
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Publication:
    """An instant that the current lineage of a format holds.

    Attributes
    ----------
    requested_time, action
        Which instant; ``action`` is the one as which it completed. Time alone is ambiguous: a
        savepoint has the time of its commit.
    version
        The format's own id of the state that brought it; see :class:`FormatCommit`.
    completion_time
        As recorded in the format; ``None`` where the format records none.
    is_expired
        Whether the format has forgotten the state that brought it: ``version`` is that of the state
        whose watermark covers it.
    """

    requested_time: InstantTime
    action: Action
    version: str
    completion_time: InstantTime | None = None
    is_expired: bool = False

    @classmethod
    def of(cls, keys: Mapping[str, str], version: str) -> Publication:
        """Return the publication that a format has recorded by :func:`instant_keys`.

        Parameters
        ----------
        keys
            These, among others. Without a completion time it has none.
        version
            See above.

        Raises
        ------
        InvalidInstantTimeError, KeyError, ValueError
            They are damaged.
        """
        done = keys.get(COMPLETION_TIME_KEY)
        return cls(
            parse_instant_time(keys[INSTANT_KEY]),
            Action(keys[ACTION_KEY]),
            version,
            parse_instant_time(done) if done else None,
        )


def instant_keys(instant: Instant, operation: str | None = None) -> dict[str, str]:
    """Return the keys that a format records of a completed instant.

    :meth:`Publication.of` reads it.

    Parameters
    ----------
    operation
        The write operation, where the action has one.
    """
    keys = {
        INSTANT_KEY: str(instant.requested_time),
        ACTION_KEY: instant.action.completed_action.value,
        COMPLETION_TIME_KEY: str(instant.effective_completion_time),
    }
    return keys | ({OPERATION_KEY: operation} if operation else {})


@runtime_checkable
class PublishedInstants(Protocol):
    """The instants that one format's current lineage holds.

    Current lineage: the ancestry of the state that a reader of the format sees now. States that
    were rolled back may still be listed somewhere; they do not count.
    """

    def holds(self, instant: Instant) -> bool:
        """Whether ``instant``, completed in step 1, is complete in the format too."""
        ...


@runtime_checkable
class NamedInstants(PublishedInstants, Protocol):
    """Published instants, which may be searched for a pending one too.

    A format holds nothing that step 1 has not completed: where it names such an instant, the
    completed file is lost.
    """

    def names(self, instant: Instant) -> bool:
        """Whether the current lineage names ``instant``, in whatever state it is."""
        ...


@runtime_checkable
class TimelineFactory(Protocol):
    """Makes a timeline from the format's metadata (RFC-93, "Timeline")."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the table's timeline as the format sees it now.

        An instant that the Hudi timeline holds as completed and the format does not is inflight in
        it; :func:`hudi_core.plugin.fenced.fence` does that for any format. Timeline and lineage are
        read in this order, so that what is found complete stays complete.

        Raises
        ------
        CorruptMetadataError
            The table says that it has this format, and the format's metadata is gone or damaged.
            Never an empty timeline: it would make the table look empty.
        """
        ...


@runtime_checkable
class MetadataFactory(Protocol):
    """Makes a file lister from the format's metadata (RFC-93, "Metadata")."""

    def create(self, meta_client: MetaClientView) -> FileIndex:
        """Return the lister of the table's files.

        Work that can be shared out, such as many small reads, goes through
        :attr:`~hudi_core.model.client.MetaClientView.run_map`.
        """
        ...


class Granularity(StrEnum):
    """What two concurrent writes may not both touch."""

    FILE_GROUP = "file_group"
    """One file group: both rewrote, or replaced, the same rows."""
    PARTITION = "partition"
    """One partition, whatever they did in it."""
    TABLE = "table"
    """The table: of two concurrent writes one is given up."""


@runtime_checkable
class ConflictResolutionStrategy(Protocol):
    """Decides whether two concurrent actions conflict (RFC-93, "Conflict Resolution")."""

    @property
    def granularity(self) -> Granularity:
        """What its answers are about."""
        ...

    def candidates(
        self, began: TimelineView, now: TimelineView, instant: Instant
    ) -> Sequence[Instant]:
        """Return the instants that ``instant`` must be compared with.

        Parameters
        ----------
        began, now
            The fenced timeline when the action began, and now, under the lock.
        instant
            The action about to complete.
        """
        ...

    def conflict(self, mine: CommitMetadata, theirs: CommitMetadata) -> str | None:
        """Why both cannot be kept, after "because"; ``None`` when both can.

        Parameters
        ----------
        mine
            What is about to be committed.
        theirs
            What one of the candidates committed.
        """
        ...


# --- how metastores know the tables of a format ---------------------------------------------------


_NUMBER: Final = re.compile(r"[1-9][0-9]{0,17}")


@dataclass(frozen=True, slots=True)
class NumberedFiles:
    """Files whose names differ in a number, from 1 on.

    Attributes
    ----------
    begin, end
        What comes before the number in their URIs, and after it.
    last
        The greatest number.
    """

    begin: str
    end: str
    last: int

    def __contains__(self, uri: object) -> bool:
        """Whether it is one of them, there or not."""
        number = self._number(uri)
        return number is not None and number <= self.last

    def is_named_so(self, uri: object) -> bool:
        """Whether it is one of them, or has a greater number."""
        return self._number(uri) is not None

    def _number(self, uri: object) -> int | None:
        if not isinstance(uri, str) or not uri.startswith(self.begin):
            return None
        number, end = uri[len(self.begin) :], self.end
        number = number.removesuffix(end) if number.endswith(end) else ""
        return int(number) if _NUMBER.fullmatch(number) is not None else None


@dataclass(frozen=True, slots=True)
class Registration:
    """What the entry of a table in a metastore says.

    Name, database and columns are the sync's.

    Attributes
    ----------
    location
        Path or URI of the folder that readers of the format open.
    parameters
        Of the entry; among them what names the format to readers.
    input_format, output_format, serde
        Names of Java classes.
    serde_parameters
        Further ones, of how files are read.
    has_path
        Whether these have ``path`` too: the location, as the metastore spells it.
    is_hudi
        Whether its readers are Hudi's. Then the sync adds to all this what those want: classes by
        the type of the table, meta columns, entries of partitions, and what Spark needs.
    pointer
        The parameter that names the present state, where there is one.
    follows
        What it named for former states of the table, as far as they are known.
    numbered
        Further such files, where a count of states names them.
    identity
        The parameter that distinguishes this table from others that were at its place before it.
    held_by
        The catalog whose entry is changed by each commit itself, so that no sync may; ``None``
        where there is none.
    """

    location: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    input_format: str = "org.apache.hadoop.mapred.FileInputFormat"
    output_format: str = "org.apache.hadoop.mapred.FileOutputFormat"
    serde: str = "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe"
    serde_parameters: Mapping[str, str] = field(default_factory=dict)
    has_path: bool = False
    is_hudi: bool = False
    pointer: str | None = None
    follows: frozenset[str] = frozenset()
    numbered: NumberedFiles | None = None
    identity: str | None = None
    held_by: str | None = None
