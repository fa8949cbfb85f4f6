"""Errors of commits."""

from __future__ import annotations

from collections.abc import Sequence

from hudi_core.errors.base import HudiError


class CommitError(HudiError):
    """A commit did not take place."""


class CommitConflictError(CommitError):
    """Another writer committed something that this commit contradicts."""

    retryable = True


class ConcurrentWriterError(CommitConflictError):
    """A second writer is at work without a lock that both share."""

    def __init__(self, base_path: str, instant: str) -> None:
        self.base_path, self.instant = base_path, instant
        super().__init__(
            f"Another live writer is writing instant {instant} to {base_path}",
            "Wait for it to finish, or give both writers "
            "hoodie.write.concurrency.mode=OPTIMISTIC_CONCURRENCY_CONTROL and the same "
            "hoodie.write.lock.provider.",
            base_path=base_path,
            instant=instant,
        )


class PendingClusteringError(CommitConflictError):
    """A write changes a file group under clustering.

    Parameters
    ----------
    base_path
        The table.
    instant
        Requested time of the clustering.
    file_id, partition_path
        One of the file groups.
    """

    def __init__(self, base_path: str, instant: str, file_id: str, partition_path: str) -> None:
        super().__init__(
            f"The write changes rows of file group {file_id} of partition {partition_path!r}, "
            f"which the pending clustering {instant} is about to replace",
            f"Nothing was written. Run the clustering (`hudi cluster {base_path} --run`) or give "
            f"it up (`hudi rollback {base_path} {instant}`), then write again; or let writes win: "
            "hoodie.clustering.updates.strategy=SparkAllowUpdateStrategy.",
            instant=instant,
            file_id=file_id,
            partition=partition_path,
        )


class ForeignCommitError(CommitError):
    """A writer other than Hudi committed to the format's metadata.

    Writes are refused, and reads go on with Hudi's last state, of which they warn once. Where the
    format has no state of Hudi any more, reads are refused as well.

    Parameters
    ----------
    base_path
        The table.
    where
        What the other writer committed to, in words.
    commits
        The commits that no Hudi writer made, as the format names them; oldest first.
    version
        The format's own id of its present state.
    hudi_version
        That of the newest state that a Hudi writer made; ``None`` where it is not known.
    is_replaced
        Whether there is none: the format's table was made again.
    rows, hudi_rows
        Rows of the two states; ``None`` where the format does not say.
    changes
        What they have done to rows and files, in words, where it was counted.
    can_take_in
        Whether a repair could write rows that they appended into the table.
    """

    def __init__(
        self,
        base_path: str,
        where: str,
        commits: Sequence[str],
        *,
        version: str,
        hudi_version: str | None = None,
        is_replaced: bool = False,
        rows: int | None = None,
        hudi_rows: int | None = None,
        changes: str | None = None,
        can_take_in: bool = True,
    ) -> None:
        self.base_path, self.where, self.commits = base_path, where, tuple(commits)
        self.version, self.hudi_version, self.is_replaced = version, hudi_version, is_replaced
        self.rows, self.hudi_rows, self.changes = rows, hudi_rows, changes
        self.can_take_in = can_take_in
        command = f"`hudi table repair {base_path}"
        discards = "--discard takes its commits out."
        takes_in = "--take-in writes rows that it appended into the table, and "
        ways = f"{takes_in if can_take_in else ''}{discards}"
        if changes is not None and can_take_in:
            hint = (
                f"Nothing was changed. {command} --take-in` writes rows that it appended into the "
                f"table, and {discards}"
            )
        elif changes is not None:
            hint = (
                "Nothing was changed. Take its commits back with that writer, or read what it "
                f"changed with it: {command} --discard` takes them out."
            )
        elif version == hudi_version:
            hint = f"Write to this table through Hudi only. {command}` takes that back."
        else:
            hint = (
                f"Write to this table through Hudi only. {command} --dry-run` counts what the "
                f"other writer did; {ways}"
            )
        super().__init__(
            self._text(),
            hint,
            base_path=base_path,
            where=where,
            commits=self.commits,
            version=version,
            hudi_version=hudi_version,
            is_replaced=is_replaced,
            rows=rows,
            hudi_rows=hudi_rows,
            changes=changes,
            can_take_in=can_take_in,
        )

    def _text(self) -> str:
        newest = self.commits[-1] if self.commits else "the present state"
        others = "" if len(self.commits) < 2 else f", nor were {len(self.commits) - 1} before it"
        text = (
            f"{newest[:1].upper()}{newest[1:]} of {self.where} was not made by a Hudi writer"
            f"{others}: "
        )
        if self.changes is not None:
            return f"{text}{self.changes}"
        if self.version == self.hudi_version:
            return f"{text}it changed no file of state {self.version}"
        text += f"its readers see state {self.version}{_with_rows(self.rows)}"
        if self.is_replaced:
            return f"{text}, and no state of Hudi's is left in it"
        if self.hudi_version is None:
            return text
        return f"{text}, Hudi sees state {self.hudi_version}{_with_rows(self.hudi_rows)}"


def _with_rows(count: int | None) -> str:
    return "" if count is None else f" ({count:,} row{'s' * (count != 1)})"


class UnpublishedCommitsError(CommitError):
    """An engine that ignores the table's format has cleaned it.

    It completed commits on the Hudi timeline alone. What readers of the format may see is gone, and
    the commits cannot be published one after the other any more.

    Parameters
    ----------
    base_path, table_format
        The table and its format.
    instant
        Requested time of the newest such commit.
    file
        One of the files that are gone.
    """

    def __init__(self, base_path: str, table_format: str, instant: str, file: str) -> None:
        self.base_path, self.table_format = base_path, table_format
        self.instant, self.file = instant, file
        super().__init__(
            f"An engine that does not know the {table_format} format wrote to the table at "
            f"{base_path}, up to commit {instant}, and cleaned files that the format needs, such "
            f"as {file}",
            f"`hudi table repair {base_path}` rebuilds the {table_format} metadata with its "
            "commits. Write to the table here, or repair it, before such an engine cleans it "
            "again.",
            base_path=base_path,
            table_format=table_format,
            instant=instant,
            file=file,
        )


class CommitValidationError(CommitError):
    """A validator refused the state that a commit was about to publish.

    Parameters
    ----------
    base_path
        The table.
    validator
        Which one: its query, or the name of its function.
    reason
        What did not hold.
    """

    def __init__(self, base_path: str, validator: str, reason: str) -> None:
        self.base_path, self.validator, self.reason = base_path, validator, reason
        super().__init__(
            f"The commit to {base_path} was refused by the validator {validator!r}: {reason}",
            "Nothing of this write is visible; put its rows right, or the validator.",
            base_path=base_path,
            validator=validator,
            reason=reason,
        )


class StageConflictError(CommitConflictError):
    """What a stage builds on has changed since.

    Parameters
    ----------
    base_path, stage
        The table and the stage.
    reason
        What has changed.
    """

    retryable = False

    def __init__(self, base_path: str, stage: str, reason: str) -> None:
        self.base_path, self.stage, self.reason = base_path, stage, reason
        super().__init__(
            f"Stage {stage} of {base_path} cannot be published: {reason}",
            "Nothing was published. Drop the stage and stage its rows again.",
            base_path=base_path,
            stage=stage,
            reason=reason,
        )


class CommitStateUnknownError(CommitError):
    """Whether the commit took place is unknown; nothing was deleted."""

    retryable = True


class IncompleteCommitError(CommitError):
    """The instant will never be complete: no reader sees it.

    It was taken back, or the format may not take it any more. What may become complete yet is a
    :class:`CommitStateUnknownError`.
    """

    retryable = True
