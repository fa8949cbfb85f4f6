"""The last idempotent write of each application, kept by the newest commit.

It is in the commit's extra metadata, so that it is part of the table's state: a rollback takes
it back, and who does not see a commit does not see what it keeps. Every commit carries it over.
Commits of other engines do not, so the commits before them are looked at, back to the last one of
this project, even where that is archived. A property of the table says whether there is anything to
look for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.errors import CorruptMetadataError, HudiError, InvalidInstantTimeError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.extra_metadata import OWN_PREFIX, Idempotency
from hudi_core.model.instant import WRITE_ACTIONS
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.model.protocols import TimelineView
from hudi_core.storage.properties_file import read_properties, update_properties

IDEMPOTENCY_KEY: Final = f"{OWN_PREFIX}idempotency"
"""Key of extra metadata: JSON, ``{"<application>": [<version>, "<requested time>"]}``."""
_MOST: Final = 1000
"""Applications that are kept; of more, those that wrote last."""


@dataclass(frozen=True, slots=True)
class Done:
    """The last idempotent write of an application."""

    version: int
    instant: InstantTime


DoneWrites = Mapping[str, Done]
"""The last idempotent write of each application."""


class AlreadyDoneError(HudiError):
    """A write is a repetition; its first result is returned."""

    def __init__(self, done: Done) -> None:
        self.done = done
        super().__init__(
            f"Version {done.version} was written as instant {done.instant}",
            "Nothing is to be done.",
        )


def repeated(done: DoneWrites, idempotency: Idempotency) -> Done | None:
    """The write that another one repeats; ``None`` for a new one."""
    found = done.get(idempotency.application)
    return found if found is not None and idempotency.version <= found.version else None


def is_accounted(client: TableMetaClient) -> bool:
    """Whether commits of the table keep idempotent writes, as stored now."""
    return ManagedKeys.idempotent_writes.read(read_properties(client.storage))


def keep_account(client: TableMetaClient) -> None:
    """Store that commits of the table keep idempotent writes.

    Under the table's lock, and before the first such commit is visible.
    """
    update_properties(client.storage, {ManagedKeys.idempotent_writes.key: "true"})


def done_writes(client: TableMetaClient, timeline: TimelineView) -> DoneWrites:
    """Idempotent writes as of a timeline that the table's format fences.

    The timeline must be fenced by the table's format.
    """
    for text, where in _kept(client, timeline):
        if text is not None:
            return decode(text, where)
    return {}


def _kept(client: TableMetaClient, timeline: TimelineView) -> Iterator[tuple[str | None, str]]:
    """Yield what each write keeps, newest first, and where."""
    writes = sorted(
        timeline.completed_writes(), key=lambda one: one.effective_completion_time, reverse=True
    )
    for instant in writes:
        kept = client.active.read_notes(instant).extra_metadata
        yield kept.get(IDEMPOTENCY_KEY), client.active.path(instant)
    for archived in sorted(
        client.archived.load(bodies=True),
        key=lambda one: one.instant.effective_completion_time,
        reverse=True,
    ):
        if archived.instant.action in WRITE_ACTIONS:
            kept = client.read_archived_commit(archived).extra_metadata
            yield kept.get(IDEMPOTENCY_KEY), f"{client.archived.folder} ({archived.instant})"


def encode(done: DoneWrites) -> str:
    """Return the text that a commit keeps."""
    newest = sorted(done.items(), key=lambda item: item[1].instant)[-_MOST:]
    entries = {name: [one.version, one.instant] for name, one in newest}
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":"))


def decode(text: str, where: str) -> DoneWrites:
    """Read the text that a commit keeps."""
    try:
        read: Any = json.loads(text)
        return {
            str(name): Done(_whole(version), parse_instant_time(instant))
            for name, (version, instant) in read.items()
        }
    except (
        ValueError,
        TypeError,
        AttributeError,
        RecursionError,
        InvalidInstantTimeError,
    ) as error:
        raise CorruptMetadataError(where, f"its {IDEMPOTENCY_KEY} cannot be read") from error


def _whole(value: object) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is no whole number")
    return value
