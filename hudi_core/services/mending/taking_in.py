"""Rows that other writers appended, brought into the table.

They are written as any rows are: by an upsert, or by an insert where the table makes keys of its
own. The commit says whose files it takes in, and the state that names its files names these no
more: no reader of the format sees a state without the rows, or one that has them twice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from hudi_core.base_file.footer import read_columns, read_footer
from hudi_core.config.merge_rules import MergeRules, merge_rules
from hudi_core.config.write import WriteConfig
from hudi_core.engine.choice import engine_for
from hudi_core.errors import (
    CommitConflictError,
    CorruptMetadataError,
    ForeignCommitError,
    HudiError,
    RecordKeyError,
    SchemaError,
    TableServiceError,
)
from hudi_core.file_slice.deleted_positions import positions_of_slices
from hudi_core.keygen import key_generator
from hudi_core.model.capability import Capability
from hudi_core.model.dry_run import DryRun
from hudi_core.model.extra_metadata import TakenIn
from hudi_core.model.file_index import NamedFile
from hudi_core.model.found_table import FoundFile, FoundTable
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.operation import INSERT, UPSERT
from hudi_core.model.protocols import TimelineView
from hudi_core.plugin.fenced import pending_publications
from hudi_core.rows.combine import existing_is_newer
from hudi_core.rows.deciding import order_values
from hudi_core.schema.table_schema import META_COLUMNS, RECORD_KEY, TableSchema
from hudi_core.services.adoption.rows import columns_of_file, rows_of_files
from hudi_core.services.after_commit import InlineServices
from hudi_core.services.mending.lost_completions import returned_groups
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn.recovery.recover import recover
from hudi_core.txn.state import TableState
from hudi_core.txn.table_lock import table_lock
from hudi_core.view.file_system import FileSystemView, replaced_groups, written_files
from hudi_core.view.storage_lister import StorageLister
from hudi_core.write.client import WriteClient
from hudi_core.write.previewing import dry_run

# --- changes of other writers to a format's metadata, counted -------------------------------------
# The format names files that Hudi knows nothing of, or does not name files of Hudi's any more. What
# was only rewritten, as by a compaction of another engine, its rows show: both sides are read.


_MODULUS: Final = 1 << 128


@dataclass(frozen=True, slots=True)
class ForeignChanges:
    """What other writers have done to the metadata of one format.

    ``commits`` are as the format names them, oldest first. ``version`` is the format's present
    state and ``hudi_version`` the newest one of Hudi; ``None`` where none is left or known.
    ``removed`` are files of Hudi's that the format does not name any more. Row counts are ``None``
    where they are not known; ``deleted_rows``, of vectors and delete files, is so where these name
    values and not rows.

    ``is_rewrite`` means that the files that came have just the rows of those that went. ``problem``
    is why nothing could be counted; else ``None``.
    """

    table_format: str
    commits: tuple[str, ...]
    version: str
    hudi_version: str | None
    added: tuple[str, ...] = ()
    added_rows: int | None = 0
    removed: tuple[str, ...] = ()
    removed_rows: int | None = 0
    deleted_rows: int | None = 0
    is_rewrite: bool = False
    problem: str | None = None

    @property
    def changes_rows(self) -> bool:
        """Whether going back to Hudi's state would change rows.

        Files without rows do not count.
        """
        if self.problem is not None:
            return True
        counts = (self.added_rows, self.removed_rows, self.deleted_rows)
        return not self.is_rewrite and any(count != 0 for count in counts)

    @property
    def is_append(self) -> bool:
        """Whether rows were added, and nothing else."""
        is_counted = self.problem is None and not self.removed and self.deleted_rows == 0
        return is_counted and bool(self.added)

    @property
    def text(self) -> str:
        """What was done, in one sentence without its end."""
        if self.problem is not None:
            return f"what it changed cannot be counted ({self.problem})"
        if self.is_rewrite:
            return (
                f"{_files(self.removed)} with {_rows(self.removed_rows)} rewritten as "
                f"{_files(self.added)}, no row changed"
            )
        parts = [
            f"{_rows(self.added_rows)} in {_files(self.added)} added" if self.added else "",
            f"{_files(self.removed)} with {_rows(self.removed_rows)} went" if self.removed else "",
            f"{_rows(self.deleted_rows)} deleted by vectors or delete files"
            if self.deleted_rows
            else "",
            "rows deleted by value, which cannot be counted" if self.deleted_rows is None else "",
        ]
        return ", ".join(filter(None, parts)) or "no row changed"


def foreign_changes(table: OpenTable, *, reads_rows: bool = True) -> tuple[ForeignChanges, ...]:
    """Changes of other writers, for each format that has some.

    Costs nothing where they have not. The metadata of a format that is damaged or missing is
    passed over.

    Without ``reads_rows``, a rewriting that only rows could distinguish from a change counts as a
    change.
    """
    found = []
    for one in table.each():
        try:
            one.host.open(one.client)
        except ForeignCommitError as error:
            found.append(_changes(one, error, reads_rows))
        except (CommitConflictError, TableServiceError) as error:
            # what plugins of before raise, without a word of what it was
            name = one.host.name
            found.append(ForeignChanges(name, (error.what,), "", None, problem="it does not say"))
        except HudiError:
            continue
    return tuple(found)


def _present(table: OpenTable, seen: TimelineView) -> FileSystemView:
    """Stored files of a timeline's present state."""
    client = table.client
    whole = seen if isinstance(seen, Timeline) else Timeline.of(seen.instants)
    return FileSystemView(
        StorageLister.of(client),
        whole,
        replaced_groups(whole, client.read_commit),
        written_files(whole, client.read_commit),
    )


def _changes(table: OpenTable, error: ForeignCommitError, reads_rows: bool) -> ForeignChanges:
    made = ForeignChanges(table.host.name, error.commits, error.version, error.hudi_version)
    try:
        try:
            seen = table.fenced()
        except ForeignCommitError:
            seen = table.client.timeline()  # nothing of Hudi's is left in the format
        view = _present(table, seen)
        slices = view.latest_slices()
        dead = positions_of_slices(table.client, slices) if table.client.config.is_split else {}
        gone = {path: len(rows) for path, rows in dead.items()}
        bases = [one.base_file for one in slices if one.base_file is not None]
        present = {one.path: one.status for one in bases}
        returned = returned_groups(table.client, table.client.timeline(), view)
        listed = table.lister().named_files()
    except HudiError as problem:
        return replace(made, problem=problem.what)
    if listed is None:
        return replace(made, problem="the format keeps no list of its files")
    try:
        named = {one.path: one for one in listed}
        # a file of deletions has no rows
        added = [one for path, one in named.items() if path not in present and one.rows != 0]
        # the format was right to leave out what has come back
        kept = present.keys() - {file.path for one in returned for file in one.files}
        removed = [path for path in kept if path not in named]
        made = replace(
            made,
            added=tuple(sorted(one.path for one in added)),
            added_rows=_sum(one.rows for one in added),
            deleted_rows=_sum(_changed(one, len(dead.get(one.path, ()))) for one in named.values()),
        )
        counts = {path: _rows_of(table, path, gone.get(path, 0)) for path in removed}
    except HudiError as problem:
        return replace(made, problem=problem.what)
    # a file without rows need not be named
    removed = sorted(path for path, rows in counts.items() if rows != 0)
    made = replace(
        made, removed=tuple(removed), removed_rows=_sum(counts[path] for path in removed)
    )
    may_be_same = bool(made.added and removed) and made.added_rows == made.removed_rows
    if may_be_same and reads_rows and made.deleted_rows == 0:
        went = [FoundFile(path, present[path].size, dead=dead.get(path)) for path in removed]
        return replace(made, is_rewrite=_is_rewrite(table, made, went))
    return made


def _rows_of(table: OpenTable, path: str, dead: int) -> int | None:
    try:
        return read_footer(table.client, path, pa.schema([])).rows - dead
    except HudiError:
        return None  # the writer that took it out may have deleted it


def _changed(file: NamedFile, dead: int) -> int | None:
    """Rows of a file that others have deleted, or brought back."""
    return None if file.deleted_rows is None else abs(file.deleted_rows - dead)


def _sum(counts: Iterable[int | None]) -> int | None:
    known = list(counts)
    return None if None in known else sum(filter(None, known))


# --- rewritten files ---------------------------------------------------------------------------


def found_table(table: OpenTable, files: Sequence[str]) -> FoundTable:
    """The table that the format's readers see, with some files.

    ``UnsupportedTableError`` means that the files alone do not have the rows.
    """
    found = table.host.find_table(table.client)
    by_path = {} if found is None else {one.path: one for one in found.files}
    missing = [path for path in files if path not in by_path]
    if found is None or missing:
        what = f"it does not name {missing[0]}" if missing else "there is none"
        raise CorruptMetadataError(f"The {table.host.name} table", what)
    return replace(found, files=tuple(by_path[path] for path in files))


def _is_rewrite(table: OpenTable, made: ForeignChanges, removed: Sequence[FoundFile]) -> bool:
    """Whether files that came have just the rows of those that went."""
    if not table.client.files.is_plain:
        return False  # where files of others are is not known
    try:
        came = found_table(table, made.added)
        went = replace(came, files=tuple(removed))
        return _digest(table, came) == _digest(table, went)
    except HudiError:
        return False


def _digest(table: OpenTable, found: FoundTable) -> tuple[int, int]:
    """Count and sum of the hashes of all rows, whatever their order."""
    count = total = 0
    for batch in rows_of_files(table.client.files.open, found.files, found.schema):
        columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
        for row in zip(*columns, strict=True):
            hashed = hashlib.blake2b(repr(row).encode(), digest_size=16).digest()
            total = (total + int.from_bytes(hashed)) % _MODULUS
        count += batch.num_rows
    return count, total


def _files(paths: Sequence[str]) -> str:
    return f"{len(paths):,} file{'s' * (len(paths) != 1)}"


def _rows(count: int | None) -> str:
    return "an unknown number of rows" if count is None else f"{count:,} row{'s' * (count != 1)}"


# --- rows that other writers appended -------------------------------------------------------------


_SHOWN: Final = 3


@dataclass(frozen=True, slots=True)
class TakeIn:
    """Rows of other writers that are written into the table.

    ``rows`` were appended by others; ``inserted`` and ``updated`` of them have keys that the table
    did not have, and had; ``deleted`` counts rows of the table that go, as one of them marks its
    key as deleted. ``instant`` is a requested time; ``None`` for a plan.
    """

    rows: int
    inserted: int
    updated: int
    deleted: int
    instant: InstantTime | None = None


def finish_earlier(table: OpenTable, config: WriteConfig) -> None:
    """Publish what a dead writer left between its two steps.

    ``CommitStateUnknownError`` means that it builds on a state of the format that others have
    changed since.
    """
    try:
        pending = pending_publications(table.fenced())
    except ForeignCommitError:
        return  # nothing of Hudi's is left in the format that it could be published in
    if pending:
        with table_lock(table, config).held():
            recover(TableState.load(table), config)


def take_in(
    table: OpenTable,
    config: WriteConfig,
    changes: Sequence[ForeignChanges],
    *,
    is_planned: bool = False,
) -> TakeIn:
    """Write rows that others appended into the table.

    With ``is_planned`` all is checked and counted the same, and nothing written. Errors leave
    nothing changed.

    Refused are deletes or rewrites that others made as well, rows without a key or with that of
    another row of theirs, and stored rows with such a key that are later by the ordering column.
    """
    rows, keys = _checked(table, config, changes)
    operation = UPSERT if table.client.config.record_key_fields else INSERT
    writer = WriteClient(
        table,
        table_lock(table, config),
        engine_for(None),
        replace(config, extras=replace(config.extras, takes_in=rows.files())),
        InlineServices(config.services),
    )
    plan = dry_run(writer, rows.read(), operation)
    if keys is not None and plan.updated:
        rows.require_latest(keys, plan)
    if is_planned:
        return TakeIn(rows.count, plan.inserted, plan.updated, plan.deleted)
    done = writer.write(rows.read(), operation)
    time = done.instant.requested_time
    return TakeIn(rows.count, done.inserted, done.updated, done.deleted, time)


def require_fit(table: OpenTable, config: WriteConfig, changes: Sequence[ForeignChanges]) -> None:
    """Refuse what :func:`take_in` would, whatever rows the table has."""
    _checked(table, config, changes)


def _checked(
    table: OpenTable, config: WriteConfig, changes: Sequence[ForeignChanges]
) -> tuple[_AppendedRows, pa.Table | None]:
    _require_appends(table, changes)
    rows = _AppendedRows.of(table, changes, is_global=config.index.index_type.is_global)
    return rows, rows.checked_keys()


def can_take_in(table: OpenTable, changes: Sequence[ForeignChanges]) -> bool:
    """Whether rows were appended alone, where they can be taken in."""
    is_able = Capability.TAKE_IN in table.host.capabilities and table.client.files.is_plain
    return is_able and all(one.is_append for one in changes if one.changes_rows)


def _require_appends(table: OpenTable, changes: Sequence[ForeignChanges]) -> None:
    table.host.require(Capability.TAKE_IN)
    if not table.client.files.is_plain:
        raise TableServiceError(
            f"The table at {table.client.base_path} has its files below storage paths, where those "
            "of other writers are not looked for",
            "Read the rows with the other writer and upsert them after `--discard`.",
        )
    for one in changes:
        if not one.is_append:
            raise TableServiceError(
                f"In the {one.table_format} metadata of {table.client.base_path} rows were not "
                f"only appended since Hudi's last state: {one.text}",
                "Nothing was changed. What was deleted or rewritten is only known to the other "
                "writer: take its commits back there, or make the same change here after "
                "`--discard`, which takes them out.",
                table_format=one.table_format,
                added_rows=one.added_rows,
                removed_rows=one.removed_rows,
                deleted_rows=one.deleted_rows,
            )


@dataclass(frozen=True)
class _AppendedRows:
    """Rows of files that others have brought.

    ``found`` is the table of each format, with these files alone. ``is_global`` means that a key is
    one of the whole table, and not of its partition.
    """

    table: OpenTable
    changes: tuple[ForeignChanges, ...]
    found: tuple[FoundTable, ...]
    schema: pa.Schema
    count: int
    is_global: bool

    @classmethod
    def of(
        cls, table: OpenTable, changes: Sequence[ForeignChanges], *, is_global: bool
    ) -> _AppendedRows:
        by_name = {one.host.name: one for one in table.each()}
        found = tuple(found_table(by_name[one.table_format], one.added) for one in changes)
        try:
            schema = pa.unify_schemas([_own_columns(one.schema) for one in found])
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SchemaError(
                f"The formats have rows of others with one column in two types: {error}",
                "Nothing was changed. Have one of the writers take its rows back.",
            ) from error
        count = sum(one.added_rows or 0 for one in changes)
        return cls(table, tuple(changes), found, schema, count, is_global)

    def files(self) -> dict[str, TakenIn]:
        """The files, by format."""
        return {one.table_format: TakenIn(one.version, one.added) for one in self.changes}

    def read(self) -> pa.RecordBatchReader:
        """The rows, file by file."""
        return pa.RecordBatchReader.from_batches(self.schema, self._batches())

    def _batches(self) -> Iterator[pa.RecordBatch]:
        opened = self.table.client.files.open
        for one in self.found:
            for batch in rows_of_files(opened, one.files, one.schema):
                given = set(batch.schema.names)
                columns = [
                    batch.column(field.name).cast(field.type)
                    if field.name in given
                    else pa.nulls(batch.num_rows, field.type)
                    for field in self.schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def checked_keys(self) -> pa.Table | None:
        """Keys, partition paths and ordering columns of all rows.

        ``None`` in a table without record keys.
        """
        client = self.table.client
        config, rules = client.config, merge_rules(client.config)
        order = {name.partition(".")[0] for name in rules.order}
        tops = {name.partition(".")[0] for name in config.partition_fields} | order
        tops |= {name.partition(".")[0] for name in config.record_key_fields}
        required = {one.name for one in client.schema.arrow if not one.nullable}
        for one in self.found:
            for file in one.files:
                self._require_columns(one, file, tops | required)
        if not config.record_key_fields:
            return None
        generator = key_generator(config, client.schema)
        wanted = pa.schema([one for one in client.schema.arrow if one.name in tops])
        parts = []
        for batch in self._batches():
            columns = [batch.column(one.name).cast(one.type) for one in wanted]
            cast = pa.RecordBatch.from_arrays(columns, schema=wanted)
            keys, paths = generator.record_keys(cast), generator.partition_paths(cast)
            made = {RECORD_KEY: keys, "path": paths.cast(pa.string())}
            parts.append(pa.table(made | {name: cast.column(name) for name in order}))
        found = pa.concat_tables(parts)
        self._require_distinct(found)
        return found

    def _require_columns(self, found: FoundTable, file: FoundFile, needed: set[str]) -> None:
        held = columns_of_file(self.table.client.files.open, file, found.schema)
        missing = sorted(needed - held)
        if missing:
            raise SchemaError(
                f"{file.path}, which another writer appended, has no column {', '.join(missing)}, "
                "which rows of the table need",
                "Nothing was changed. Have that writer append the rows with it, or take its "
                "commits out (`--discard`).",
                columns=missing,
                path=file.path,
            )

    def _require_distinct(self, keys: pa.Table) -> None:
        by = [RECORD_KEY] if self.is_global else ["path", RECORD_KEY]
        counts = keys.group_by(by).aggregate([([], "count_all")])
        repeated = counts.filter(pc.greater(counts["count_all"], 1))
        if repeated.num_rows:
            raise RecordKeyError(
                f"{repeated.num_rows:,} record keys are of several of the rows that another writer "
                f"appended, such as {_some(repeated[RECORD_KEY])}: which of them is the row is not "
                "known",
                "Nothing was changed. Have that writer delete all but one row of each key, or take "
                "its commits out (`--discard`).",
                keys=repeated.num_rows,
            )

    def require_latest(self, keys: pa.Table, plan: DryRun) -> None:
        """Refuse rows that an upsert would drop as too late."""
        rules = merge_rules(self.table.client.config)
        if not rules.stored_order:
            return
        tops = list(dict.fromkeys(name.partition(".")[0] for name in rules.stored_order))
        late: list[Any] = []
        for file in plan.files:
            if file.path is not None and file.updated:
                stored = read_columns(self.table.client, file.path, [RECORD_KEY, *tops])
                here = pc.equal(keys["path"], str(file.partition_path))
                late += _late(stored, keys if self.is_global else keys.filter(here), rules)
        if late:
            names = ", ".join(rules.stored_order)
            raise RecordKeyError(
                f"{len(late):,} of the rows that another writer appended have the key of a row "
                f"that is later by {names}, such as {_some(late)}: an upsert would drop them",
                "Nothing was changed. Have that writer append them with greater values, or take "
                "its commits out (`--discard`).",
                keys=len(late),
            )


def _own_columns(schema: pa.Schema) -> pa.Schema:
    """The columns but Hudi's own, in the types that tables have."""
    own = pa.schema([field for field in schema if field.name not in META_COLUMNS])
    return pa.schema([field.remove_metadata() for field in TableSchema.adopt(own).arrow])


def _late(stored: pa.Table, keys: pa.Table, rules: MergeRules) -> list[Any]:
    """Keys of incoming rows that are older than the stored ones."""
    places = pc.index_in(stored[RECORD_KEY].cast(pa.string()), keys[RECORD_KEY].combine_chunks())
    met = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
    had = stored.take(pa.array(met))
    given = keys.take(places.take(pa.array(met)))
    kinds = {field.name: field.type for field in given.schema}
    had = had.select([name for name in had.column_names if name in kinds])
    had = had.cast(pa.schema([(name, kinds[name]) for name in had.column_names]))
    fields = rules.stored_order
    newer = existing_is_newer(order_values(had, fields, rules), order_values(given, fields, rules))
    return [*given[RECORD_KEY].filter(newer).to_pylist()]


def _some(keys: Any) -> str:
    values = keys.to_pylist() if isinstance(keys, pa.ChunkedArray) else keys
    return ", ".join(map(repr, values[:_SHOWN]))
