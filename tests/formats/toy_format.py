"""A small table format kept in JSON files, as a third party would write it.

Version ``n`` of a table is ``.hoodie/toy/n.json`` (``n`` in eight digits): the files of the
table, the instants that made it what it is, and those that it will never take. A version is made by
putting a file that was not there, which is compare-and-set on the version before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hudi_core.spi import (
    WRITE_ACTIONS,
    Action,
    AlreadyExistsError,
    Capability,
    CleanerPlan,
    CommitConflictError,
    CommitMetadata,
    CommitStateUnknownError,
    CorruptMetadataError,
    FileGroupId,
    FileId,
    FileIndex,
    ForeignCommitError,
    FormatCapabilities,
    FormatCommit,
    IncompleteCommitError,
    Instant,
    InstantTime,
    Lineage,
    MetaClientView,
    PartitionPath,
    PathNotFoundError,
    Publication,
    State,
    Storage,
    StorageError,
    TableFormat,
    TableServiceError,
    TimelineView,
    fence,
    touched_groups,
    written_files,
)
from hudi_core.spi.files import table_lister

Files = Mapping[str, Sequence[int]]
"""Paths of files, with the positions of their dead rows."""
FOLDER = ".hoodie/toy"
OURS = "hudi"
MAX_BYTES = 1 << 24


@dataclass(frozen=True)
class Record:
    """What a version knows of one instant, and which files there were before it."""

    time: str
    action: str
    operation: str | None
    completion: str
    version: int
    before: Files = field(default_factory=dict)


@dataclass(frozen=True)
class Version:
    """One state of a table."""

    number: int
    files: Files = field(default_factory=dict)
    records: tuple[Record, ...] = ()
    revoked: tuple[str, ...] = ()
    watermark: str | None = None
    made_by: str = OURS
    columns: str | None = None

    def find(self, instant: Instant) -> Record | None:
        action = str(instant.action.completed_action)
        return next(
            (
                one
                for one in self.records
                if (one.time, one.action) == (instant.requested_time, action)
            ),
            None,
        )

    def lineage(self) -> Lineage:
        held = [
            Publication(
                InstantTime(one.time),
                Action(one.action),
                str(one.version),
                InstantTime(one.completion),
            )
            for one in self.records
        ]
        return Lineage.of(held, None if self.watermark is None else InstantTime(self.watermark))


def path_of(number: int) -> str:
    return f"{FOLDER}/{number:08d}.json"


def to_json(version: Version) -> bytes:
    return json.dumps(version, default=vars).encode()


def from_json(data: bytes, where: str) -> Version:
    try:
        found: dict[str, Any] = json.loads(data)
        records = tuple(Record(**one) for one in found.pop("records"))
        return Version(records=records, revoked=tuple(found.pop("revoked")), **found)
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptMetadataError(where, f"it is no version of a toy table: {error}") from error


def newest(storage: Storage) -> Version | None:
    names = [one.name for one in storage.list(FOLDER) if one.name.endswith(".json")]
    if not names:
        return None
    where = f"{FOLDER}/{max(names)}"
    try:
        return from_json(storage.read(where, MAX_BYTES), where)
    except PathNotFoundError as error:
        raise CorruptMetadataError(where, "it has just been removed") from error


def head(client: MetaClientView) -> Version:
    found = newest(client.storage)
    if found is None:
        raise CorruptMetadataError(
            f"{client.base_path}/{FOLDER}", "the toy metadata of the table is gone"
        )
    return found


def ours(client: MetaClientView, version: Version) -> Version:
    if version.made_by != OURS:
        made = [f"version {version.number} (by {version.made_by})"]
        number = str(version.number)
        raise ForeignCommitError(client.base_path, "the toy table", made, version=number)
    return version


def expect(version: Version, expected: str | None) -> None:
    if expected not in (None, str(version.number)):
        raise CommitConflictError(
            f"The toy table is at version {version.number}, not {expected}", "Run it again."
        )


def make(client: MetaClientView, version: Version) -> FormatCommit:
    """Put the version after a head; raises when another one is there."""
    try:
        client.storage.put_if_absent(path_of(version.number), to_json(version))
    except AlreadyExistsError as error:
        raise CommitConflictError(
            f"The toy table has a version {version.number} already", "Run the write again."
        ) from error
    except StorageError as error:
        raise CommitStateUnknownError(
            f"Version {version.number} of the toy table may be there or not ({error.what})",
            "The next writer finds out.",
        ) from error
    return receipt(client, version)


def receipt(client: MetaClientView, version: Version, number: int | None = None) -> FormatCommit:
    return FormatCommit(str(number or version.number), f"{client.base_path}/{FOLDER}")


def record(
    client: MetaClientView,
    instant: Instant,
    expected: str | None,
    operation: str | None = None,
    added: Iterable[str] = (),
    gone: Iterable[FileGroupId] = (),
    columns: str | None = None,
    stays: Callable[[Version, str], bool] = lambda base, path: False,
    dead: Files | None = None,
) -> FormatCommit:
    """Make the table hold an instant, unless it does.

    ``stays``: files that are named on although their groups go; ``dead``: rows that die in files.
    """
    base = head(client)
    found = base.find(instant)
    if found is not None:
        return receipt(client, base, found.version)
    if instant.requested_time in base.revoked:
        raise IncompleteCommitError(
            f"Instant {instant.requested_time} was taken out of the toy table",
            "Run the write again.",
            instant=instant.requested_time,
        )
    expect(ours(client, base), expected)
    groups = set(gone)
    files = {
        one: rows
        for one, rows in base.files.items()
        if group_of(one) not in groups or stays(base, one)
    } | {one: [] for one in added}
    for one, rows in (dead or {}).items():
        files[one] = sorted({*files[one], *rows})
    number = base.number + 1
    made = Record(
        instant.requested_time,
        str(instant.action.completed_action),
        operation,
        instant.effective_completion_time,
        number,
        base.files,
    )
    return make(
        client,
        replace(
            base,
            number=number,
            files=files,
            records=(*base.records, made),
            columns=columns or base.columns,
        ),
    )


def group_of(path: str) -> FileGroupId:
    folder, _, name = path.rpartition("/")
    return FileGroupId(PartitionPath(folder), FileId(name.lstrip(".").partition("_")[0]))


class ToyFactory:
    """Both factories of the format."""

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        return fence(meta_client.timeline(), [head(meta_client).lineage()])

    def create(self, meta_client: MetaClientView) -> FileIndex:
        return table_lister(meta_client)


class ToyFormat(TableFormat):
    """The hooks."""

    spi_version = "1.0"

    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities.of(
            Capability.COPY_ON_WRITE,
            Capability.IDENTITY_PARTITIONS,
            Capability.REPLACE,
            Capability.ADD_COLUMN,
        )

    def get_timeline_factory(self) -> ToyFactory:
        return ToyFactory()

    def get_metadata_factory(self) -> ToyFactory:
        return ToyFactory()

    def create(self, meta_client: MetaClientView, **_: Any) -> FormatCommit:
        found = newest(meta_client.storage)
        if found is not None:  # of a creator that died
            return receipt(meta_client, ours(meta_client, found))
        return make(meta_client, Version(1))

    def open(self, meta_client: MetaClientView, **_: Any) -> FormatCommit:
        return receipt(meta_client, ours(meta_client, head(meta_client)))

    def find_publication(self, meta_client: MetaClientView, instant: Instant) -> Publication | None:
        base = head(meta_client)
        return base.lineage().publication(instant, str(base.number))

    def complete_write(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        return record(
            meta_client,
            instant,
            expected_version,
            commit_metadata.operation_type,
            [str(one.path) for one in written_files(commit_metadata)],
            touched_groups(commit_metadata),
            commit_metadata.schema_json,
        )

    def complete_schema_change(
        self,
        meta_client: MetaClientView,
        commit_metadata: CommitMetadata,
        instant: Instant,
        expected_version: str | None,
        **_: Any,
    ) -> FormatCommit:
        return record(
            meta_client,
            instant,
            expected_version,
            commit_metadata.operation_type,
            columns=commit_metadata.schema_json,
        )

    def before_clean(self, meta_client: MetaClientView, clean_plan: CleanerPlan, **_: Any) -> None:
        live = set(head(meta_client).files)
        for path in live.intersection(clean_plan.paths()):
            raise TableServiceError(
                f"The clean would delete {path}, which the toy table names",
                "Nothing was deleted. Remove the plan.",
                path=path,
            )

    def complete_clean(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        return record(meta_client, instant, expected_version)

    def archive_instants(
        self,
        meta_client: MetaClientView,
        archived_instants: Sequence[Instant],
        expected_version: str | None,
        **_: Any,
    ) -> None:
        base = ours(meta_client, head(meta_client))
        # cleans may be archived before older writes, which can still be rolled back
        writes = (one for one in archived_instants if one.action in WRITE_ACTIONS)
        last = max((one.effective_completion_time for one in writes), default=None)
        if last is None or (base.watermark or "") >= last:
            return
        expect(base, expected_version)
        kept = tuple(one for one in base.records if one.completion > last)
        number = base.number + 1
        make(meta_client, replace(base, number=number, records=kept, watermark=last))

    def before_rollback(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> None:
        base = ours(meta_client, head(meta_client))
        if instant.requested_time in base.revoked:
            return
        found = base.find(instant)
        fenced = replace(
            base, number=base.number + 1, revoked=(*base.revoked, instant.requested_time)
        )
        if found is None:
            expect(base, expected_version)
            make(meta_client, fenced)
        elif instant.state is State.COMPLETED:
            expect(base, expected_version)
            later = base.records[base.records.index(found) + 1 :]
            if any(one.before != base.files or one.action in WRITE_ACTIONS for one in later):
                raise TableServiceError(
                    f"Later versions of the toy table build on {instant.requested_time}",
                    "Roll the later instants back first.",
                    instant=instant.requested_time,
                )
            kept = tuple(one for one in base.records if one != found)
            make(meta_client, replace(fenced, files=found.before, records=kept))

    def complete_rollback(
        self, meta_client: MetaClientView, instant: Instant, expected_version: str | None, **_: Any
    ) -> FormatCommit:
        return record(meta_client, instant, expected_version)


class ModestFormat(ToyFormat):
    """The toy format without all that it could do without."""

    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities.of(Capability.COPY_ON_WRITE, Capability.IDENTITY_PARTITIONS)
