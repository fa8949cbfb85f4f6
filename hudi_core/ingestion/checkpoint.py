"""How far an ingestion has come, as its newest commit keeps it."""

from __future__ import annotations

import json
from collections.abc import Sequence
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

    Attributes
    ----------
    commits
        How many commits it has made; the number of the newest one.
    since
        Of files that were not modified later, in milliseconds since the epoch, all are taken for
        read.
    passed
        How many of those it has read.
    read
        Digests of the files that it has read and that were modified later.
    """

    commits: int = 0
    since: int = -1
    passed: int = 0
    read: frozenset[str] = field(default_factory=frozenset)

    def unread(self, listed: Sequence[FileStatus]) -> Sequence[FileStatus]:
        """The listed files that are still to be read."""
        return [one for one in listed if one.modified_ms > self.since and not self._has(one)]

    def missed(self, listed: Sequence[FileStatus]) -> int:
        """The least number of listed files that came too late.

        Files that were read and deleted since hide as many.
        """
        return max(0, sum(one.modified_ms <= self.since for one in listed) - self.passed)

    def after(
        self, files: Sequence[FileStatus], listed: Sequence[FileStatus], memory_days: int
    ) -> Checkpoint:
        """The checkpoint of the commit that brings files.

        Parameters
        ----------
        files
            The files of the commit.
        listed
            All files.
        memory_days
            For how long digests are kept before the newest file that was read.
        """
        read = self.read | {digest(one) for one in files}
        known = [one for one in listed if digest(one) in read]
        pending = [one.modified_ms for one in self.unread(listed) if digest(one) not in read]
        newest = max((one.modified_ms for one in known), default=self.since)
        horizon = newest - memory_days * _DAY_MS
        since = max(self.since, min([horizon, *(time - 1 for time in pending)]))
        kept = frozenset(digest(one) for one in known if one.modified_ms > since)
        gone = sum(one.modified_ms <= since for one in known)
        return Checkpoint(self.commits + 1, since, self.passed + gone, kept)

    def encode(self) -> str:
        """The text that a commit keeps."""
        stated = {
            "commits": self.commits,
            "since": self.since,
            "passed": self.passed,
            "read": sorted(self.read),
        }
        return json.dumps(stated, separators=(",", ":"))

    @classmethod
    def decode(cls, text: str, where: str) -> Checkpoint:
        """The checkpoint of a commit.

        Raises
        ------
        CorruptMetadataError
            The text is none.
        """
        try:
            stated: Any = json.loads(text)
            commits, since, passed = (stated[name] for name in ("commits", "since", "passed"))
            read = stated["read"]
            if {type(commits), type(since), type(passed)} != {int} or not isinstance(read, list):
                raise ValueError(text)
            return cls(commits, since, passed, frozenset(map(str, read)))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise CorruptMetadataError(where, f"its {CHECKPOINT_KEY} cannot be read") from error

    def _has(self, file: FileStatus) -> bool:
        return digest(file) in self.read


def digest(file: FileStatus) -> str:
    """A short text for a file's path, size and modification time.

    64 bits: among a million files two are alike with a chance of 3 in 10 millions.
    """
    text = f"{file.path}\0{file.size}\0{file.modified_ms}"
    return xxhash.xxh64_hexdigest(text.encode())
