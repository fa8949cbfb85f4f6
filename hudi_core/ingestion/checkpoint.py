"""How far an ingestion has come, as its newest commit keeps it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import xxhash

from hudi_core.errors import CorruptMetadataError
from hudi_core.model.files import FileStatus

CHECKPOINT_KEY: Final = "ingest.checkpoint"
"""Key of extra metadata: JSON, see :meth:`Checkpoint.encode`."""
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The files that an ingestion has read.

    ``commits`` is also the number of the newest one. Files not modified after ``since``
    (milliseconds since the epoch) count as read; ``passed`` is how many of those it has read.
    ``read`` are the files modified later: modification times by digests.
    """

    commits: int = 0
    since: int = -1
    passed: int = 0
    read: Mapping[str, int] = field(default_factory=dict)

    def unread(self, listed: Sequence[FileStatus]) -> Sequence[FileStatus]:
        """The listed files that are still to be read."""
        return [one for one in listed if one.modified_ms > self.since and not self._has(one)]

    def missed(self, listed: Sequence[FileStatus]) -> int:
        """The least number of listed files that came too late.

        Files that were read and deleted since hide as many.
        """
        return max(0, sum(one.modified_ms <= self.since for one in listed) - self.passed)

    def after(
        self,
        files: Sequence[FileStatus],
        listed: Sequence[FileStatus],
        memory_days: int,
        now_ms: int,
    ) -> Checkpoint:
        """The checkpoint of the commit that brings files.

        Files that are not listed are remembered like others: another run may have seen more, and a
        folder that was away may come back.

        ``files`` are those of the commit, ``listed`` all. Files are kept for ``memory_days`` before
        the newest that was read; ``now_ms`` keeps a file from the future from making others late.
        """
        read = {**self.read, **{digest(one): one.modified_ms for one in files}}
        pending = [one.modified_ms for one in self.unread(listed) if digest(one) not in read]
        newest = min(max(read.values(), default=self.since), now_ms)
        horizon = newest - memory_days * _DAY_MS
        since = max(self.since, min([horizon, *(time - 1 for time in pending)]))
        kept = {name: time for name, time in read.items() if time > since}
        return Checkpoint(self.commits + 1, since, self.passed + len(read) - len(kept), kept)

    def encode(self) -> str:
        """The text that a commit keeps."""
        stated = {
            "commits": self.commits,
            "since": self.since,
            "passed": self.passed,
            "read": dict(sorted(self.read.items())),
        }
        return json.dumps(stated, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str, where: str) -> Checkpoint:
        """The checkpoint of a commit."""
        try:
            stated: Any = json.loads(text)
            commits, since, passed = (stated[name] for name in ("commits", "since", "passed"))
            read = stated["read"]
            if {type(one) for one in (commits, since, passed, *read.values())} != {int}:
                raise ValueError(text)
            return cls(commits, since, passed, read)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise CorruptMetadataError(where, f"its {CHECKPOINT_KEY} cannot be read") from error

    def _has(self, file: FileStatus) -> bool:
        return digest(file) in self.read


def digest(file: FileStatus) -> str:
    """A short text for a file's path, size and modification time.

    64 bits: among a million files two are alike with a chance of 3 in 10 millions.
    """
    text = f"{file.path}\0{file.size}\0{file.modified_ms}"
    return xxhash.xxh64_hexdigest(text.encode())
