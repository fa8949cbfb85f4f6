"""The one tree of errors.

Every error carries its facts as attributes, builds its message from them, and ends with a sentence
that says what to do. ``retryable`` is whether the same call may succeed when it is made again
unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class HudiError(Exception):
    """Root of everything the project raises on purpose.

    Parameters
    ----------
    what
        What is wrong, as one sentence without the final full stop.
    hint
        What the reader of the message can do about it.
    facts
        The values the message was built from; kept as the attribute ``facts`` for programs.
    """

    retryable: ClassVar[bool] = False

    def __init__(self, what: str, hint: str, **facts: object) -> None:
        self.what = what
        self.hint = hint
        self.facts = facts
        super().__init__(f"{what}. {hint}")

    def __reduce__(self) -> tuple[object, ...]:
        # errors cross from executors to the driver, where Spark unpickles them
        return (_rebuild, (type(self), self.what, self.hint, self.facts))


def _rebuild(kind: type[HudiError], what: str, hint: str, facts: dict[str, object]) -> HudiError:
    error = kind.__new__(kind)
    HudiError.__init__(error, what, hint, **facts)
    for name, value in facts.items():
        setattr(error, name, value)
    return error


class UnknownOptionWarning(UserWarning):
    """An option that is not known, or not built yet."""


class MetaSyncWarning(UserWarning):
    """A sync that failed after its commit, and may."""


# --- configuration -------------------------------------------------------------------------------


class ConfigError(HudiError):
    """An option is unknown, malformed, or contradicts what the table has stored."""


class InvalidOptionError(ConfigError):
    """The value of one option cannot be used."""

    def __init__(self, key: str, value: object, reason: str, hint: str) -> None:
        self.key, self.value = key, value
        super().__init__(f"{key}={value!r} cannot be used: {reason}", hint, key=key, value=value)


class OptionConflictError(ConfigError):
    """An option contradicts the value stored in the table's ``hoodie.properties``."""

    def __init__(self, key: str, given: object, stored: object, hint: str | None = None) -> None:
        self.key, self.given, self.stored = key, given, stored
        super().__init__(
            f"{key}={given!r} contradicts the table, which was created with {stored!r}",
            hint or "Drop the option to use the table's value, or write to a new table.",
            key=key,
            given=given,
            stored=stored,
        )


class StoragePathTakenError(ConfigError):
    """A storage path that other tables' files keep from a table."""

    def __init__(self, storage_path: str, reason: str, hint: str) -> None:
        self.storage_path, self.reason = storage_path, reason
        super().__init__(
            f"Data files cannot be placed below {storage_path}: {reason}",
            hint,
            storage_path=storage_path,
            reason=reason,
        )


class UnsupportedTableError(ConfigError):
    """The table has a feature this release cannot handle without losing data."""

    def __init__(self, base_path: str, feature: str, hint: str) -> None:
        self.base_path, self.feature = base_path, feature
        super().__init__(
            f"The table at {base_path} {feature}", hint, base_path=base_path, feature=feature
        )


class UnfinishedMoveError(UnsupportedTableError):
    """A move of the format's metadata is unfinished.

    The metadata may be at the new place: only the user can say that it is not, by a forced repair.
    """


# --- timeline ------------------------------------------------------------------------------------


class TimelineError(HudiError):
    """The timeline does not allow the requested change."""


class InvalidInstantTimeError(TimelineError):
    """A text is not an instant time."""

    def __init__(self, text: str, reason: str) -> None:
        self.text, self.reason = text, reason
        super().__init__(
            f"{text!r} is not an instant time: {reason}",
            "Use 17 digits (yyyyMMddHHmmssSSS, UTC), 14 digits, or an RFC 3339 date and time.",
            text=text,
            reason=reason,
        )


class TimeOutOfRangeError(TimelineError):
    """The requested time is before a table's first commit or after now.

    Parameters
    ----------
    base_path
        The table.
    asked
        The time, as the user wrote it.
    first
        Requested time of the first commit; ``None`` where there is none.
    now
        The time in the table's zone.
    """

    def __init__(self, base_path: str, asked: str, first: str | None, now: str) -> None:
        self.base_path, self.asked, self.first, self.now = base_path, asked, first, now
        known = "it has no commits" if first is None else f"its first commit is {first}"
        super().__init__(
            f"The table at {base_path} has no state as of {asked!r}: {known}, and now is {now}",
            "Leave the time out to read the latest state."
            if first is None
            else "Give a time from the one to the other; `hudi timeline PATH` lists the commits.",
            base_path=base_path,
            asked=asked,
            first=first,
            now=now,
        )


class InstantNotFoundError(TimelineError):
    """No instant of that time (and action) is on the timeline."""

    def __init__(self, instant: str, where: str) -> None:
        self.instant, self.where = instant, where
        super().__init__(
            f"Instant {instant} is not on {where}",
            "List the instants with `hudi timeline PATH`.",
            instant=instant,
            where=where,
        )


class HistoryExpiredError(TimelineError):
    """A past state or incremental read needs a removed data file."""

    def __init__(self, instant: str, path: str) -> None:
        self.instant, self.path = instant, path
        super().__init__(
            f"{path}, which instant {instant} wrote, is no longer stored",
            "Clean has removed that version: begin later, or read the latest snapshot.",
            instant=instant,
            path=path,
        )


# --- commit --------------------------------------------------------------------------------------


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
    """The instant is not complete, and never will be: nobody sees it.

    It was taken back, or the format may not take it any more. What may become complete yet is a
    :class:`CommitStateUnknownError`.
    """

    retryable = True


# --- locks and storage ---------------------------------------------------------------------------


class LockError(HudiError):
    """A lock could not be taken or was lost."""

    retryable = True


class ResourceLimitError(HudiError):
    """The system gives this process no more of something, such as threads."""

    retryable = True


class TaskFailedError(HudiError):
    """A task that an engine gave up.

    The processes that ran it died, or it broke; with Spark after as many attempts as
    ``spark.task.maxFailures`` allows.
    """

    retryable = True

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The engine gave up on a task: {reason}",
            "Nothing of it is visible, and the same call may succeed. Where executors keep dying, "
            "their logs say of what; for want of memory see docs/cluster.md.",
            reason=reason,
        )


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

    def __init__(self, source: str, path: str, reason: str) -> None:
        self.source, self.path, self.reason = source, path, reason
        super().__init__(
            f"{path} in {source} cannot be ingested: {reason}",
            "Nothing of its commit was written. Mend the file, or move it away, and run it again.",
            source=source,
            path=path,
            reason=reason,
        )


class MetastoreError(HudiError):
    """A metastore does not answer, or refuses."""

    retryable = True

    def __init__(self, uris: Sequence[str], reason: str) -> None:
        self.uris, self.reason = tuple(uris), reason
        super().__init__(
            f"The metastore at {', '.join(uris)} did not answer: {reason}",
            "Check its address, that it asks for no Kerberos, and what these credentials may do; "
            "then do the same again.",
            uris=self.uris,
            reason=reason,
        )


class MetastoreRefusalError(MetastoreError):
    """A metastore refuses a change of an entry, and would again."""

    retryable = False


class MetastoreEntryError(HudiError):
    """An entry of a metastore that cannot be read as a table."""

    def __init__(self, name: str, reason: str, hint: str) -> None:
        self.name, self.reason = name, reason
        super().__init__(f"{name} {reason}", hint, name=name, reason=reason)


class MetaSyncError(HudiError):
    """A sync failed after its commit, which stands.

    Attributes
    ----------
    result
        What the call would have returned: of a write, its ``CommitResult``.
    """

    def __init__(self, base_path: str, tool: str, reason: str, result: object = None) -> None:
        self.base_path, self.tool, self.reason, self.result = base_path, tool, reason, result
        super().__init__(
            f"The commit to the table at {base_path} is complete, but the sync with {tool} that "
            f"follows it failed: {reason}",
            f"Do not write the rows again. `hudi sync {tool} {base_path}` brings the metastore up "
            "to date, as the next commit does; "
            "hoodie.datasource.hive_sync.ignore_exceptions=true makes this a warning.",
            base_path=base_path,
            tool=tool,
            reason=reason,
        )


class ScanClosedError(HudiError):
    """Splits were asked of a scan that is closed."""

    def __init__(self, base_path: str) -> None:
        self.base_path = base_path
        super().__init__(
            f"The scan of the table at {base_path} is closed, and not all of its splits were taken",
            "Begin another scan.",
            base_path=base_path,
        )


# --- schema and data -----------------------------------------------------------------------------


class SchemaError(HudiError):
    """Rows do not match the table, or a schema change is impossible."""


class RecordKeyError(SchemaError):
    """A record key is missing or null."""


class DuplicateRecordKeyError(RecordKeyError):
    """An insert that fails on duplicates brings existing keys."""


class MergeCardinalityError(SchemaError):
    """Several source rows would change one row of the table."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        super().__init__(
            f"Several rows of the source match one row of the table and would change it ({rows} "
            "more than there may be)",
            "Nothing was written. Leave one source row for each row of the table, such as the "
            "latest one by its key, or narrow the conditions of the merge.",
            rows=rows,
        )


class PartitionValueError(SchemaError):
    """A partition value cannot become a path."""


class UnknownPartitionError(PartitionValueError):
    """A partition that the table lacks, or that has no rows."""


# --- services and damage -------------------------------------------------------------------------


class TableServiceError(HudiError):
    """A table service (rollback, clean, clustering, ...) cannot do what was requested."""


class UnknownStageError(TableServiceError):
    """There is no such stage: it was published, dropped, or has expired."""

    def __init__(self, base_path: str, stage: str) -> None:
        self.base_path, self.stage = base_path, stage
        super().__init__(
            f"The table at {base_path} has no stage {stage}: it was published or dropped, or it "
            "has expired",
            f"`hudi stage list {base_path}` shows its stages.",
            base_path=base_path,
            stage=stage,
        )


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


# --- plugins -------------------------------------------------------------------------------------


class PluginError(HudiError):
    """A table format or another extension cannot be used."""


class UnknownTableFormatError(PluginError):
    """No installed distribution provides the table's format.

    Parameters
    ----------
    name
        The format's name.
    installed
        Names of the formats that are installed.
    package
        The distribution to install.
    known
        Whether ``package`` is known to provide it; otherwise it is what custom would call it.
    near
        An installed format, or one of the project's, that ``name`` may be a misspelling of; then
        no package is proposed.
    """

    def __init__(
        self,
        name: str,
        installed: Sequence[str],
        package: str,
        *,
        known: bool = True,
        near: str | None = None,
    ) -> None:
        self.name, self.installed = name, tuple(installed)
        self.package, self.known, self.near = package, known, near
        if known:
            hint = f"Run `pip install {package}`."
        elif near is not None:
            hint = f"Did you mean {near!r}?"
        else:
            hint = (
                "Install the distribution that registers it under the entry-point group "
                f"hudi.table_formats; by custom it is called {package}, but check whose it is "
                "first."
            )
        super().__init__(
            f"No installed plugin provides the table format {name!r} "
            f"(installed: {', '.join(installed) or 'none'})",
            hint,
            name=name,
            installed=tuple(installed),
            package=package,
            known=known,
            near=near,
        )


class UnknownExtensionError(PluginError):
    """No installed distribution provides an extension of that name.

    Parameters
    ----------
    kind
        What was looked for: ``key generator``, ``lock provider``, ...
    name
        Its name.
    known
        The names that there are: those built in, and those that are installed.
    group
        The entry-point group that was searched.
    near
        The known name that ``name`` may be a misspelling of.
    given
        The option that names it, with its text; ``None`` where the table does.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        known: Sequence[str],
        group: str,
        *,
        near: str | None = None,
        given: str | None = None,
    ) -> None:
        self.kind, self.name, self.known = kind, name, tuple(known)
        self.group, self.near, self.given = group, near, given
        what = (
            f"o installed plugin provides the {kind} {name!r} (known: {', '.join(known) or 'none'})"
        )
        super().__init__(
            f"N{what}" if given is None else f"{given} cannot be used: n{what}",
            f"Did you mean {near!r}?"
            if near is not None
            else f"Install the distribution that registers it under the entry-point group {group}, "
            "wherever the table is written: with Spark on the executors, too.",
            kind=kind,
            name=name,
            known=tuple(known),
            group=group,
            near=near,
            given=given,
        )

    def given_as(self, option: str, text: str) -> UnknownExtensionError:
        """The same error of an option that names the extension."""
        given = f"{option}={text!r}"
        return UnknownExtensionError(
            self.kind, self.name, self.known, self.group, near=self.near, given=given
        )


class PluginConflictError(PluginError):
    """Two distributions claim the same name of a format or extension."""

    def __init__(self, name: str, distributions: Sequence[str], kind: str = "table format") -> None:
        self.name, self.distributions, self.kind = name, tuple(distributions), kind
        super().__init__(
            f"The {kind} {name!r} is provided by several distributions: {', '.join(distributions)}",
            "Uninstall all but one of them.",
            name=name,
            distributions=tuple(distributions),
            kind=kind,
        )


class PluginLoadError(PluginError):
    """The plugin's entry point cannot be imported."""

    def __init__(
        self, name: str, distribution: str, reason: str, kind: str = "table format"
    ) -> None:
        self.name, self.distribution, self.reason = name, distribution, reason
        self.kind = kind
        super().__init__(
            f"The {kind} {name!r} of distribution {distribution} cannot be loaded: {reason}",
            f"Reinstall or upgrade {distribution}.",
            name=name,
            distribution=distribution,
            reason=reason,
            kind=kind,
        )


class PluginContractError(PluginError):
    """A plugin broke its contract: :mod:`hudi_core.hookspecs`, or its base class."""

    def __init__(self, name: str, reason: str, *, kind: str = "table format") -> None:
        self.name, self.reason, self.kind = name, reason, kind
        contract = (
            "hudi_core.hookspecs says what each hook owes"
            if kind == "table format"
            else "docs/extension_points.md says what each method owes"
        )
        super().__init__(
            f"The {kind} {name!r} breaks its contract: {reason}",
            f"Report it to the plugin's authors; {contract}.",
            name=name,
            reason=reason,
            kind=kind,
        )


class ExtensionCallError(PluginError):
    """A method of an extension failed with a foreign error."""

    def __init__(self, kind: str, name: str, method: str, reason: str) -> None:
        self.kind, self.name, self.method, self.reason = kind, name, method, reason
        super().__init__(
            f"The {kind} {name!r} failed in {method}: {reason}",
            "Report it to the plugin's authors.",
            kind=kind,
            name=name,
            method=method,
            reason=reason,
        )


class PluginHookError(PluginError):
    """A hook of the table's format failed with a foreign error.

    What the hook had done by then is not known; for a ``complete_*`` hook the format may hold the
    instant or not.
    """

    def __init__(self, name: str, hook: str, reason: str) -> None:
        self.name, self.hook, self.reason = name, hook, reason
        super().__init__(
            f"The table format {name!r} failed in {hook}: {reason}",
            "Report it to the plugin's authors; the next write finds out how far the format came.",
            name=name,
            hook=hook,
            reason=reason,
        )


class UnsupportedCapabilityError(PluginError):
    """The table's format does not declare the ability an action needs.

    Parameters
    ----------
    name
        The format's name.
    capability
        What is missing, in words.
    reason
        Why the format lacks it, as it says itself.
    """

    def __init__(self, name: str, capability: str, reason: str = "") -> None:
        self.name, self.capability, self.reason = name, capability, reason
        because = f", because {reason}" if reason else ""
        super().__init__(
            f"The table format {name!r} does not support {capability}{because}",
            "Use another format, or a release of the plugin that declares it.",
            name=name,
            capability=capability,
            reason=reason,
        )


class CommandLoadError(PluginError):
    """A command that another distribution adds to `hudi` cannot be imported."""

    def __init__(self, name: str, distribution: str, reason: str) -> None:
        self.name, self.distribution, self.reason = name, distribution, reason
        super().__init__(
            f"The command {name!r} of distribution {distribution} cannot be loaded: {reason}",
            f"Reinstall or upgrade {distribution}.",
            name=name,
            distribution=distribution,
            reason=reason,
        )


class CommandConflictError(PluginError):
    """Two distributions add a command of the same name to `hudi`."""

    def __init__(self, name: str, distributions: Sequence[str]) -> None:
        self.name, self.distributions = name, tuple(distributions)
        super().__init__(
            f"The command {name!r} is provided by several distributions: "
            f"{', '.join(distributions)}",
            "Uninstall all but one of them.",
            name=name,
            distributions=tuple(distributions),
        )
