"""Errors of tables and metadata that are damaged or missing."""

from __future__ import annotations

from hudi_core.errors.base import HudiError


class NotATableError(HudiError):
    """The path does not hold a Hudi table, or holds something else."""

    def __init__(self, base_path: str, reason: str, hint: str) -> None:
        self.base_path, self.reason = base_path, reason
        super().__init__(f"{base_path} {reason}", hint, base_path=base_path, reason=reason)


class CorruptMetadataError(HudiError):
    """A metadata file of a table is damaged."""

    def __init__(
        self, path: str, reason: str, hint: str = "Restore the file from a backup of the table."
    ) -> None:
        self.path, self.reason = path, reason
        super().__init__(f"{path} is damaged: {reason}", hint, path=path, reason=reason)


class MissingMetadataError(CorruptMetadataError):
    """The metadata of a table's format is not in its place.

    Parameters
    ----------
    path
        Where it should be.
    reason
        What is there instead, to follow ``path``.
    hint
        What to do.
    """

    def __init__(self, path: str, reason: str, hint: str) -> None:
        super().__init__(path, reason, hint)
        self.what = f"{path} {reason}"
        self.args = (f"{self.what}. {hint}",)


class ForeignMetadataError(CorruptMetadataError):
    """Another engine made the metadata table of a table with storage paths.

    It knows none of the table's files. The next write drops it.
    """


class LostCompletionError(CorruptMetadataError):
    """A complete commit's completed file is lost: it looks pending.

    Parameters
    ----------
    base_path, folder
        The table, and the folder of its timeline in it.
    action, instant
        Which commit.
    evidence
        What shows that it was complete.
    """

    def __init__(
        self, base_path: str, folder: str, action: str, instant: str, evidence: str
    ) -> None:
        super().__init__(
            f"{base_path}/{folder}",
            f"the completed file of {action} {instant} is lost: {evidence}",
            f"Nothing was deleted. `hudi table repair {base_path}` puts the file back; "
            f"`hudi rollback {base_path} {instant}` gives the commit up.",
        )
        self.instant, self.evidence = instant, evidence
        self.facts.update(instant=instant, evidence=evidence)
