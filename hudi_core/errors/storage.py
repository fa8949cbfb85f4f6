"""Errors of stores, paths and data files."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.errors.base import HudiError


class StorageError(HudiError):
    """The store did not do what was requested."""


class PathNotFoundError(StorageError):
    """Nothing is stored under a path."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"Nothing is stored at {path}", "Check the path.", path=path)


class AlreadyExistsError(StorageError):
    """Put-if-absent found something under the path."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} exists already", "Another writer was first; reload and try again.", path=path
        )


class PreconditionFailedError(StorageError):
    """Compare-and-set found another version than the one expected."""

    retryable = True

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(
            f"{path} changed since it was read", "Read it again and repeat the change.", path=path
        )


class UnsafeStoreError(StorageError):
    """The store ignores conditions of puts; writers would overwrite each other."""

    def __init__(self, root: str) -> None:
        self.root = root
        super().__init__(
            f"{root} is in a store that ignores the conditions of puts (If-None-Match, If-Match)",
            "Let one writer at a time write the table, with "
            "hoodie.write.concurrency.mode=SINGLE_WRITER, or move it to a store that honours them.",
            root=root,
        )


class UnsafePathError(StorageError):
    """A path would leave the table, or cannot be stored safely."""

    def __init__(self, path: str, reason: str, hint: str = "Use another value.") -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path!r} is not a safe path: {reason}", hint, path=path, reason=reason)


class IncompleteListingError(StorageError):
    """A listing lacks files that completed writes name.

    Parameters
    ----------
    base_path
        The table.
    missing
        Which files, and what is listed of each instead.
    """

    retryable = True

    def __init__(self, base_path: str, missing: Sequence[str]) -> None:
        self.base_path, self.missing = base_path, tuple(missing)
        some = "; ".join(self.missing[:3]) + ("; ..." if len(self.missing) > 3 else "")
        super().__init__(
            f"The folders of the table at {base_path} do not show what its writes name "
            f"({len(self.missing)} files): {some}",
            "Nothing was changed. Run it again where the store lists late; if the files are lost, "
            "restore them from a backup, or roll their instants back.",
            base_path=base_path,
            missing=self.missing,
        )


class DataFileError(StorageError):
    """A data file that the timeline names cannot be read."""

    def __init__(self, base_path: str, reason: str, hint: str | None = None) -> None:
        self.base_path, self.reason = base_path, reason
        super().__init__(
            f"A data file of the table at {base_path} cannot be read: {reason}",
            hint
            or "Open the table again, in case clean removed the file meanwhile; if the error "
            "stays, the file is damaged or lost: restore it from a backup, or roll its instant "
            "back.",
            base_path=base_path,
            reason=reason,
        )


class MisplacedFileError(DataFileError):
    """A data file in the table's folder instead of its storage path.

    Another engine put it there, which knows of no storage paths.

    Parameters
    ----------
    base_path
        The table.
    path
        Of the file, below it.
    instant
        Of the write.
    """

    def __init__(self, base_path: str, path: str, instant: str) -> None:
        self.path, self.instant = path, instant
        super().__init__(
            base_path,
            f"{path} lies in the table's folder, and not below its storage path: an engine wrote "
            f"instant {instant} that does not know where the table's files are, and saw none",
            f"Roll back what it wrote with `hudi rollback {base_path} {instant}`, rebuild the "
            f"metadata table with `hudi table repair --metadata {base_path}`, and write the rows "
            "again by this project.",
        )
        self.facts |= {"path": path, "instant": instant}


class SourceFileError(StorageError):
    """A file to be ingested cannot be read."""

    def __init__(
        self,
        source: str,
        path: str,
        reason: str,
        hint: str | None = None,
        *,
        line: int | None = None,
        column: str | None = None,
        value: str | None = None,
    ) -> None:
        self.source, self.path, self.reason = source, path, reason
        self.line, self.column, self.value = line, column, value
        super().__init__(
            f"{path} in {source} cannot be ingested: {reason}",
            hint
            or "Nothing of its commit was written. Mend the file, or move it away, and run it "
            "again.",
            source=source,
            path=path,
            reason=reason,
            line=line,
            column=column,
            value=value,
        )
