"""A run of an ingestion: list, choose, read, and write."""

from __future__ import annotations

import logging
import time
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

import pyarrow as pa

from hudi_core.config.ingestion import IngestionConfig, SourceFormat
from hudi_core.config.kinds import PartialUpdateMode
from hudi_core.config.merge_keys import MergeKeys
from hudi_core.config.resolve import options_as_strings
from hudi_core.config.schema import SchemaConfig
from hudi_core.config.sql import SqlLimits
from hudi_core.config.table_keys import TableKeys
from hudi_core.config.write import WriteConfig
from hudi_core.doors.datasource import write
from hudi_core.engine.base import Engine
from hudi_core.engine.choice import chosen_engine
from hudi_core.errors import (
    CorruptMetadataError,
    InvalidOptionError,
    PathNotFoundError,
    SchemaError,
    SourceFileError,
)
from hudi_core.ingestion.formats import (
    CHANGE,
    RowReader,
    format_of,
    holds_csv,
    with_inferred,
    without_untyped,
)
from hudi_core.ingestion.source_files import (
    CHECKPOINT_KEY,
    Checkpoint,
    SourceFolder,
    in_order,
    read_schema,
    source_folder,
)
from hudi_core.model.files import FileStatus
from hudi_core.model.operation import UPSERT
from hudi_core.model.result import CommitResult
from hudi_core.schema.absence import absences
from hudi_core.schema.joining import joined
from hudi_core.services.opening import open_table, table_exists
from hudi_core.services.progress import Progress, no_progress
from hudi_core.storage.location import PathLike, location_of
from hudi_core.storage.options import StorageOptions
from hudi_core.table import Extras, Options, Table
from hudi_core.write.conditional.duckdb_sql import in_duckdb
from hudi_core.write.conditional.duckdb_text import DuckDb
from hudi_core.write.conditional.sql_text import library, plain_strings, shallow
from hudi_core.write.ending import last_write

# --- transformations -----------------------------------------------------------------------------


PLACEHOLDER: Final = "<SRC>"
_ROWS: Final = "incoming_rows"


def transformed(text: str, rows: pa.Table, limits: SqlLimits) -> pa.Table:
    """The rows of a query over others.

    ``text`` is in Spark's SQL, and names the rows :data:`PLACEHOLDER`.
    """
    for one in absences(rows):
        raise SchemaError(
            f"{one.row} lacks the column {one.path!r}, and what a query makes of it is a value",
            f"Let files have one set of columns, or leave out {IngestionConfig.sql.key}.",
            columns=[one.path],
        )
    sqlglot = library("sqlglot", text)
    if PLACEHOLDER not in text:
        raise _refused(text, f"it does not name {PLACEHOLDER}, the rows of the files")
    try:
        with shallow(text):
            statements = sqlglot.parse(
                plain_strings(text.replace(PLACEHOLDER, _ROWS)), read="spark"
            )
    except sqlglot.errors.SqlglotError as error:
        raise _refused(text, str(error).split("\n", 1)[0]) from error
    if len(statements) != 1 or not isinstance(statements[0], sqlglot.exp.Query):
        raise _refused(text, "it is not one query")
    with shallow(text):
        query = in_duckdb(statements[0], text)
    with DuckDb(limits) as database:
        return database.query(query, {_ROWS: rows})


def _refused(text: str, reason: str) -> InvalidOptionError:
    return InvalidOptionError(
        IngestionConfig.sql.key, text, reason, f"Write a query FROM {PLACEHOLDER}."
    )


# --- runs ----------------------------------------------------------------------------------------


# --- results -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IngestedBatch:
    """Files that one commit brings.

    ``size`` is in bytes; ``commit`` is ``None`` for a dry run.
    """

    files: Sequence[str]
    size: int
    commit: CommitResult | None


@dataclass(frozen=True, slots=True)
class IngestResult:
    """A run of an ingestion.

    ``batches`` of a dry run are what would be written. ``late`` is a lower bound of the files that
    came too late to be read (``hoodie.ingest.late.files.days``); the next run reads those in
    ``changed``.
    """

    path: str
    source: str
    name: str
    batches: Sequence[IngestedBatch] = field(default_factory=tuple)
    late: int = 0
    changed: Sequence[str] = ()

    @property
    def commits(self) -> Sequence[CommitResult]:
        """The commits that were made."""
        return [one.commit for one in self.batches if one.commit is not None]

    @property
    def files(self) -> int:
        """How many files were read."""
        return sum(len(one.files) for one in self.batches)

    def __str__(self) -> str:
        count = f"{self.files:,} file{'' if self.files == 1 else 's'}"
        made = f"{len(self.batches)} commit{'' if len(self.batches) == 1 else 's'}"
        return f"{count} of {self.source} in {made}"


# --- runs ----------------------------------------------------------------------------------------


_log = logging.getLogger(__name__)
_APPLICATION: Final = "ingest:"
_DELETED: Final = "D"


def ingest(
    path: PathLike,
    source: PathLike | None = None,
    *,
    source_format: str | None = None,
    name: str | None = None,
    options: Options | None = None,
    schema: pa.Schema | None = None,
    since_ms: int | None = None,
    dry_run: bool = False,
    engine: Engine | None = None,
    progress: Progress = no_progress,
) -> IngestResult:
    """Write the unread files of a folder into a table.

    Each file is read once, whatever happens: the commit that brings its rows says so. A table that
    is not there is created with Hudi's options. Files are to be moved into the folder whole; one
    that changes after it was read is read again.

    Parameters
    ----------
    path
        Base path of the table.
    source
        The folder of the files; by default that of ``hoodie.streamer.source.dfs.root``.
    source_format
        ``parquet``, ``json``, ``csv`` or ``dms``; by default the names of the files say it.
    name
        Name of the ingestion, under which the table knows what was read; by default the place of
        the folder. Several ingestions write to one table under different names.
    options
        Hudi's options for the table and the writes. The operation is ``upsert`` by default.
    schema
        Types of columns that the table does not have yet; names too, where CSV files have none. By
        default that of ``hoodie.streamer.schemaprovider.source.schema.file``.
    since_ms
        For an ingestion that has not begun: only files that were modified later are read, in
        milliseconds since the epoch, as in a checkpoint of Hudi Streamer.
    dry_run
        Whether only to say which files would be read.
    engine
        Writes the rows; by default this process.
    progress
        Called with how many files are written, and of how many.

    Returns
    -------
    IngestResult
        The files and commits.

    Raises
    ------
    SourceFileError
        A file cannot be read, or has what a column cannot hold as it is; names the line. The
        commits before its own are kept.
    PathNotFoundError
        There is no such folder.
    InvalidOptionError
        An option that cannot be used, no source, or a checkpoint for an ingestion that has one.
    SchemaError
        Columns do not fit the table.
    """
    given = dict(options_as_strings(options))
    if source_format is not None:
        given[IngestionConfig.source_format.key] = source_format
    config = IngestionConfig.from_options(given)
    place = source if source is not None else config.root
    if place is None:
        raise InvalidOptionError(
            IngestionConfig.root.key, None, "there is no folder to read", "Name the source."
        )
    storage = StorageOptions.from_options(given)
    folder = source_folder(place, storage)
    if schema is None and config.schema_file is not None:
        schema = read_schema(config.schema_file, storage)
    run = _Run(location_of(path), folder, name or folder.location, config, given, schema, engine)
    listed = folder.list()
    checkpoint = run.begin(since_ms, listed)
    if not listed and folder.is_missing and not checkpoint.commits:
        raise PathNotFoundError(folder.location)
    late = checkpoint.missed(listed)
    if late:
        _log.warning(
            "%s files in %s are older than what is remembered, and are not read", late, place
        )
    result = IngestResult(run.path, folder.location, run.name, late=late)
    if dry_run:
        return replace(result, batches=[*run.planned(checkpoint, listed)])
    done, total = 0, len(checkpoint.unread(listed))
    for batch in run.written(checkpoint, listed):
        done += len(batch.files)
        progress(done, total)
        result = replace(result, batches=[*result.batches, batch])
    return replace(result, changed=tuple(run.changed))


@dataclass(slots=True)
class _Run:
    """A run of an ingestion."""

    path: str
    folder: SourceFolder
    name: str
    config: IngestionConfig
    options: dict[str, str]
    schema: pa.Schema | None
    engine: Engine | None
    table: Table | None = None
    changed: list[str] = field(default_factory=list)

    @property
    def application(self) -> str:
        """The name by which the table knows the ingestion."""
        return _APPLICATION + self.name

    def begin(self, since_ms: int | None, listed: Sequence[FileStatus]) -> Checkpoint:
        """The checkpoint to start from."""
        stored = self._stored()
        if since_ms is None:
            return stored or Checkpoint()
        if stored is not None:
            raise InvalidOptionError(
                "since_ms",
                since_ms,
                f"the ingestion {self.name} has a checkpoint of its own",
                "Leave it out; or give the ingestion another name, to start afresh.",
            )
        passed = sum(one.modified_ms <= since_ms for one in listed)
        return Checkpoint(0, since_ms, passed)

    def planned(
        self, checkpoint: Checkpoint, listed: Sequence[FileStatus]
    ) -> Iterator[IngestedBatch]:
        """The commits that would be made."""
        while files := self._next(checkpoint, listed):
            yield _batch(files, None)
            checkpoint = self._after(checkpoint, files, listed)

    def written(
        self, checkpoint: Checkpoint, listed: Sequence[FileStatus]
    ) -> Iterator[IngestedBatch]:
        """Write what is not read yet, one commit after the other."""
        while files := self._next(checkpoint, listed):
            rows, unchanged = self._rows(files)
            listed = [one for one in listed if one.path not in self.changed]
            if not unchanged or not rows.num_columns:
                # of files without any row no table can be made
                listed = [one for one in listed if one not in unchanged]
                continue
            following = self._after(checkpoint, unchanged, listed)
            result = self._write(rows, following)
            if result.is_repetition:
                # another run of the ingestion was faster, perhaps with other files
                checkpoint = self._stored() or Checkpoint()
                continue
            checkpoint = following
            yield _batch(unchanged, result)

    def _stored(self) -> Checkpoint | None:
        """The checkpoint that the table keeps, as it is now."""
        if not table_exists(self.path, self.options):
            return None
        opened = open_table(self.path, self.options)
        self.table = Table(opened, self._write_options())
        found = last_write(opened, opened.timeline(), self.application)
        if found is None:
            return None
        done, commit = found
        where = f"commit {done.instant} of {self.path}"
        text = commit.extra_metadata.get(CHECKPOINT_KEY)
        if text is None:
            reason = f"the checkpoint of the ingestion {self.name} is gone with it"
            raise CorruptMetadataError(where, reason)
        return Checkpoint.decode(text, where)

    def _after(
        self, checkpoint: Checkpoint, files: Sequence[FileStatus], listed: Sequence[FileStatus]
    ) -> Checkpoint:
        now_ms = int(time.time() * 1000)
        return checkpoint.after(files, listed, self.config.memory_days, now_ms)

    def _next(self, checkpoint: Checkpoint, listed: Sequence[FileStatus]) -> Sequence[FileStatus]:
        """The files of the next commit."""
        unread = checkpoint.unread(listed)
        if not unread:
            return ()
        size = 0
        chosen: list[FileStatus] = []
        for one in in_order(unread, self._format(unread)):
            size += one.size
            if chosen and size > self.config.most_bytes:
                break
            chosen.append(one)
        return chosen

    def _rows(self, files: Sequence[FileStatus]) -> tuple[pa.Table, Sequence[FileStatus]]:
        """The rows of files, but for files that changed meanwhile."""
        known = self._known()
        names = (self.schema or known or pa.schema([])).names
        keys, marks = self._keys(), self._marks_absent()
        source_format = self._format(files)
        reader = RowReader(self.folder, self.config, source_format, known, names, keys, marks)
        tables: list[pa.Table] = []
        unchanged: list[FileStatus] = []
        for one in files:
            read = self._read(reader, one)
            if read is None:
                self.changed.append(one.path)
            else:
                tables.append(read)
                unchanged.append(one)
        if not tables:
            return pa.table({}), unchanged
        paths = [one.path for one in unchanged]
        ends = [*accumulate(table.num_rows for table in tables)]

        def row(number: int) -> str:
            at = bisect_right(ends, number)
            return f"Row {number - (ends[at - 1] if at else 0) + 1:,} of {paths[at]}"

        rows = joined(tables, paths, row if marks else None)
        if self.config.csv_infers and holds_csv(source_format, paths):
            rows = with_inferred(rows, known, keys)
        rows = without_untyped(rows, known)
        if not rows.num_columns and known is not None:
            rows = known.empty_table()
        if self.config.sql is not None and rows.num_columns:
            limits = SqlLimits.from_options(self.options)
            rows = transformed(self.config.sql, rows, limits)
        return rows, unchanged

    def _known(self) -> pa.Schema | None:
        """The columns whose types are known."""
        if self.table is None or self.config.sql is not None:
            # what a query makes has the table's types, and not what it is made of
            return self.schema
        stored = self.table.schema
        known = set(stored.names)
        new = [one for one in self.schema or () if one.name not in known]
        return pa.schema([*stored, *new])

    def _keys(self) -> frozenset[str]:
        """The columns of the record key."""
        if self.table is not None:
            return frozenset(self.table.config.record_key_fields)
        return frozenset(TableKeys.record_key_fields.read(self.options) or ())

    def _marks_absent(self) -> bool:
        """Whether a column that rows lack is more than null."""
        options = self._write_options()
        keeps = WriteConfig.from_options(options).partial_update_mode
        is_filled = SchemaConfig.from_options(options).fill_missing
        return keeps is PartialUpdateMode.KEEP_VALUES or not is_filled

    def _read(self, reader: RowReader, file: FileStatus) -> pa.Table | None:
        """The rows of a file; ``None`` of one that changes meanwhile."""
        try:
            found = reader.read(file.path)
        except SourceFileError:
            if self.folder.is_unchanged(file):
                raise
            return None
        return found if self.folder.is_unchanged(file) else None

    def _write(self, rows: pa.Table, checkpoint: Checkpoint) -> CommitResult:
        options = self._write_options()
        extras = Extras(
            {CHECKPOINT_KEY: checkpoint.encode()}, (self.application, checkpoint.commits)
        )
        engine = chosen_engine(self.engine, rows)
        if self.table is not None:
            operation = WriteConfig.from_options(options).operation
            return self.table.perform(rows, operation, engine, extras)
        result = write(
            rows,
            self.path,
            options=options,
            engine=engine,
            extra_metadata=extras.extra_metadata,
            idempotency=extras.idempotency,
        )
        self.table = Table(open_table(self.path, options), options)
        if result is None:
            raise AssertionError("a write of mode append has a result")
        return result

    def _format(self, files: Sequence[FileStatus]) -> SourceFormat:
        return self.config.source_format or format_of([one.path for one in files])

    def _write_options(self) -> dict[str, str]:
        """Options of the writes, and what follows from the source."""
        options = {
            SchemaConfig.fill_missing.key: "true",
            WriteConfig.operation.key: UPSERT.option,
            **self.options,
        }
        merging = (MergeKeys.delete_field, TableKeys.payload_class)
        is_dms = self.config.source_format is SourceFormat.DMS
        if is_dms and not any(key.is_given(options) for key in merging):
            options[MergeKeys.delete_field.key] = CHANGE
            options[MergeKeys.delete_marker.key] = _DELETED
        return options


def _batch(files: Sequence[FileStatus], commit: CommitResult | None) -> IngestedBatch:
    return IngestedBatch([one.path for one in files], sum(one.size for one in files), commit)
