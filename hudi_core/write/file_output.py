"""Opens base files: marker, partition metadata, then the file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa

from hudi_core.base_file.encoded_columns import constant
from hudi_core.base_file.key_bounds import BloomSizing
from hudi_core.base_file.writer import BaseFileOptions, BaseFileResult, BaseFileWriter
from hudi_core.errors import AlreadyExistsError, IncompleteCommitError
from hudi_core.metadata.partition_types import BLOOM_FILTERS
from hudi_core.metadata.table import StoredPartitions
from hudi_core.model.files import PARTITION_METADATA_FILE, PartitionPath, join_path
from hudi_core.rows.context import WriteContext
from hudi_core.schema.table_schema import FILE_NAME
from hudi_core.storage.location import require_shared
from hudi_core.storage.open import open_storage
from hudi_core.txn.markers import MarkerKind, Markers
from hudi_core.write.nesting import can_nest, require_unnested_partition

_TELLING_ROWS: Final = 4096
"""Rows that stay of a file from which on its next version encodes columns as it did, where few more
are new; of smaller ones a sample says which columns repeat themselves."""


def mark(
    context: WriteContext, partition_path: PartitionPath, file_name: str, kind: MarkerKind
) -> None:
    """Create the marker of a file before the file exists.

    One of a preview has none.

    ``IncompleteCommitError``: the write takes no more files, since a faster attempt at the task was
    counted, or it was undone. A new partition within another, or around one, is refused; so is a
    machine that does not have the table.
    """
    if context.preview is not None:
        return
    # a rollback after a power failure does not rely on markers, so they need not be flushed
    storage = open_storage(context.base_path, context.storage_options, fsync=False)
    markers = Markers(storage, context.instant)
    if context.attempts is not None:
        path = join_path(partition_path, file_name)
        context.attempts.mark(path, markers.path(partition_path, file_name, kind))
    else:
        require_shared(context.base_path)
    markers.create(partition_path, file_name, kind)
    if context.attempts is None and not markers.is_open():
        # who sealed the write may have listed its markers before there was this one
        raise _takes_no_more(context)
    if kind is not MarkerKind.CREATE:
        return
    storage = open_storage(context.base_path, context.storage_options, fsync=context.write.fsync)
    metadata = join_path(partition_path, PARTITION_METADATA_FILE)
    if storage.head(metadata) is None:
        if can_nest(context.table):
            data = context.files.over(storage)
            require_unnested_partition(data, context.table, partition_path, context.instant)
        depth = len(partition_path.split("/")) if partition_path else 0
        lines = ("#partition metadata", f"commitTime={context.instant}", f"partitionDepth={depth}")
        # another task of this write may be first: both say the same
        with contextlib.suppress(AlreadyExistsError):
            storage.put_if_absent(metadata, ("\n".join(lines) + "\n").encode())


@contextmanager
def open_base_file(
    context: WriteContext, partition_path: PartitionPath, file_name: str
) -> Iterator[BaseFileWriter]:
    """Open a new base file of the write.

    A file that is not closed in full is never named in a commit.
    """
    path = context.data_path(partition_path, file_name)
    filesystem, place = context.files.filesystem(path)
    writer = BaseFileWriter(
        filesystem,
        place,
        context.schema,
        context.table.name,
        file_options(context),
        meta_columns=context.table.stored_meta_columns,
    )
    try:
        yield writer
    except BaseException:
        writer.abort()
        raise
    keep_file(context, path)


def keep_file(context: WriteContext, path: str) -> None:
    """Keep a complete file, unless its attempt was lost."""
    if context.preview is not None:
        return
    storage = open_storage(context.base_path, context.storage_options, fsync=False)
    markers = Markers(storage, context.instant)
    attempts = context.attempts
    if not (markers.is_open() if attempts is None else attempts.is_open(markers.is_open)):
        # this attempt was lost: the write went on, or was undone, without it
        context.files.over(storage, fsync=False).delete(path)
        raise _takes_no_more(context)
    filesystem, place = context.files.filesystem(path)
    if attempts is not None and context.write.fsync and filesystem.type_name == "local":
        attempts.flush(place)


def decides_encodings(kept: pa.Table, added: int) -> bool:
    """Whether a file's next version encodes columns as it did.

    ``kept`` are its rows that stay, ``added`` is how many come.
    """
    return bool(kept.num_rows >= max(_TELLING_ROWS, added // 2))


def renamed(stored: pa.Table, file_name: str) -> pa.Table:
    """Return stored rows with the name of their new file."""
    position = stored.schema.get_field_index(FILE_NAME)
    return stored.set_column(position, FILE_NAME, constant(file_name, stored.num_rows))


def bloom_for_index(context: WriteContext, written: BaseFileResult) -> bytes | None:
    """The bloom filter of a file, if an index asks for it."""
    kept = BLOOM_FILTERS in StoredPartitions.of(context.table).all
    return written.bloom if kept else None


def _takes_no_more(context: WriteContext) -> IncompleteCommitError:
    return IncompleteCommitError(
        f"Instant {context.instant} takes no further files",
        "Another attempt at this task was faster, or the write failed; nothing is to be done.",
        instant=context.instant,
    )


def file_options(context: WriteContext) -> BaseFileOptions:
    """How base files of the write are written."""
    write = context.write
    bloom = BloomSizing(write.bloom_fpp, write.bloom_max_entries, write.bloom_entries)
    return BaseFileOptions(
        codec=write.compression_codec,
        level=write.compression_level,
        few_rows_codec=write.few_rows_codec,
        row_group_bytes=write.row_group_bytes,
        page_bytes=write.page_bytes,
        dictionary=write.dictionary_enabled,
        bloom=bloom if write.bloom_enabled else None,
        # in this process, files are flushed while others are written
        fsync=write.fsync and context.attempts is None,
    )
