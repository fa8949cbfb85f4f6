"""A base for formats that record every action by one method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hudi_core.hookspecs.table_format import TableFormat
from hudi_core.model.client import FileSystemViewManager, MetaClientView
from hudi_core.model.commit import CommitMetadata, WriteStatus
from hudi_core.model.format import FormatCommit
from hudi_core.model.instant import Instant


@dataclass(frozen=True, slots=True)
class Completion:
    """What has completed on the Hudi timeline, for the format to record.

    Attributes
    ----------
    meta_client
        The open table.
    instant
        The completed instant.
    expected_version
        The state on which the format's change is made, as hooks get it.
    commit_metadata
        The body of a write, a clustering, a compaction or a schema change; ``None`` for other
        actions, which change no files of the format's present state.
    write_statuses
        The files of a write, a clustering or a compaction, with column statistics; none in a
        replay.
    view_manager
        Views of the table's files, as hooks get it.
    """

    meta_client: MetaClientView
    instant: Instant
    expected_version: str | None
    commit_metadata: CommitMetadata | None = None
    write_statuses: Sequence[WriteStatus] = ()
    view_manager: FileSystemViewManager | None = None


class RecordingFormat(TableFormat, ABC):
    """A table format that records every completed action in one way.

    All ``complete_*`` hooks but the one that deletes a savepoint come to :meth:`record`. What is
    different about one of them, a format says by overriding its hook.
    """

    @abstractmethod
    def record(self, completion: Completion) -> FormatCommit:
        """Make the lineage hold an instant, as every hook owes it."""

    def metadata_of(self, meta_client: MetaClientView) -> Any:
        """What functions get for the table's metadata: see :func:`passed_on`."""
        return meta_client

    def _completed(
        self,
        *,
        meta_client: MetaClientView,
        instant: Instant,
        expected_version: str | None,
        **rest: Any,
    ) -> FormatCommit:
        """Come to :meth:`record`; :class:`TableFormat` says what the hook owes."""
        body = rest.get("commit_metadata") or rest.get("replace_commit_metadata")
        statuses = rest.get("write_statuses", ())
        views = rest.get("view_manager")
        return self.record(
            Completion(meta_client, instant, expected_version, body, statuses, views)
        )

    complete_write = _completed
    complete_clustering = _completed
    complete_compaction = _completed
    complete_log_compaction = _completed
    complete_schema_change = _completed
    complete_clean = _completed
    complete_rollback = _completed
    complete_savepoint = _completed
    complete_restore = _completed


def passed_on(function: Callable[..., Any], *names: str) -> Any:
    """A hook that passes the metadata and some arguments to a function.

    ``Any``, as the base class has its signature.

    Parameters
    ----------
    function
        Gets :meth:`RecordingFormat.metadata_of` the table first.
    names
        The arguments of the hook that it gets after that, by their places.
    """

    def hook(self: RecordingFormat, *, meta_client: MetaClientView, **given: Any) -> Any:
        return function(self.metadata_of(meta_client), *(given[name] for name in names))

    return hook
