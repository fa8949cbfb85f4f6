"""The hooks of the native format.

Hudi's own format keeps no metadata beside the Hudi timeline, so there is no step 2: a receipt says
what step 1 did, and nothing has to be taken back before files are deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hudi_core.spi import (
    EARLIEST,
    WRITE_ACTIONS,
    Capability,
    Completion,
    FileIndex,
    FormatCapabilities,
    FormatCommit,
    FormatOption,
    Instant,
    MetaClientView,
    Publication,
    RecordingFormat,
    Registration,
    TimelineView,
)
from hudi_core.spi.files import table_lister

_CAPABILITIES = FormatCapabilities.of(
    Capability.SINGLE_STEP,
    Capability.COPY_ON_WRITE,
    Capability.MERGE_ON_READ,
    Capability.DELETION_VECTORS,
    Capability.VIRTUAL_KEYS,
    Capability.DROPPED_PARTITION_COLUMNS,
    Capability.UNPARTITIONED,
    Capability.IDENTITY_PARTITIONS,
    Capability.TRANSFORMED_PARTITIONS,
    Capability.EMPTY_PARTITION_VALUES,
    Capability.STORAGE_PATH,
    Capability.SEVERAL_STORAGE_PATHS,
    Capability.SHARED_STORAGE_PATH,
    Capability.REPLACE,
    Capability.CLUSTERING,
    Capability.SAVEPOINT,
    Capability.RESTORE,
    Capability.CONVERSION,
    Capability.ADD_COLUMN,
    Capability.DROP_COLUMN,
    Capability.RENAME_COLUMN,
    Capability.REORDER_COLUMNS,
    Capability.PROMOTE_TYPE,
)


class NativeTableFormat(RecordingFormat):
    """Apache Hudi's own table format."""

    spi_version = "1.0"

    def get_capabilities(self) -> FormatCapabilities:
        """Everything that a Hudi table can hold."""
        return _CAPABILITIES

    def get_options(self) -> Sequence[FormatOption[Any]]:
        """None: all that there is to choose is the table's."""
        return ()

    def get_timeline_factory(self) -> NativeTimelineFactory:
        """The Hudi timeline is the truth."""
        return NativeTimelineFactory()

    def get_metadata_factory(self) -> NativeMetadataFactory:
        """The table's folders are listed."""
        return NativeMetadataFactory()

    def get_registration(self, meta_client: MetaClientView) -> Registration:
        """A table for Hudi's readers."""
        return Registration(meta_client.base_path, is_hudi=True)

    def create(self, meta_client: MetaClientView, **_: Any) -> FormatCommit:
        """The version is the completion time of the last completed instant."""
        completed = (one for one in meta_client.timeline().instants if one.is_completed)
        times = (one.effective_completion_time for one in completed)
        return FormatCommit(version=max(times, default=EARLIEST))

    open = rebuild = create  # nothing to make

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        """An instant is published when the Hudi timeline holds it as completed."""
        timeline = meta_client.timeline()
        action = instant.action.completed_action
        found = timeline.find(instant.requested_time, action)
        if found is not None:
            return _publication(found) if found.is_completed else None
        # not on the active timeline any more: an archived write was complete
        if action in WRITE_ACTIONS and timeline.is_committed(instant.requested_time):
            return _publication(instant)
        return None

    def record(self, completion: Completion) -> FormatCommit:
        """Nothing to record: step 1 is all."""
        return _receipt(completion.instant)

    def before_clean(self, **_: Any) -> None:
        """No metadata names the files that go."""

    def before_rollback(self, **_: Any) -> None:
        """The caller takes the completed file away, and with it the instant."""

    def complete_delete_savepoint(self, instant: Instant, **_: Any) -> FormatCommit:
        """The savepoint goes with its files on the timeline."""
        return _receipt(instant)

    def before_restore(self, **_: Any) -> None:
        """The rollbacks inside the restore take the completed files away."""


def _receipt(instant: Instant) -> FormatCommit:
    return FormatCommit(version=instant.effective_completion_time)


def _publication(instant: Instant) -> Publication:
    time = instant.effective_completion_time
    return Publication(
        instant.requested_time, instant.action.completed_action, time, instant.completion_time
    )


# --- files of a native table ----------------------------------------------------------------------


class NativeMetadataFactory:
    """Makes the table's file lister, which runs on the engine."""

    def create(self, meta_client: MetaClientView) -> FileIndex:
        """Return the lister of the table's files."""
        return table_lister(meta_client)


# --- its timeline ---------------------------------------------------------------------------------


class NativeTimelineFactory:
    """Returns the Hudi timeline without a fence: step 1 suffices."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the Hudi timeline as it is now; one listing."""
        return meta_client.timeline()
