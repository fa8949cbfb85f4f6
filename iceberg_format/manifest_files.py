"""Manifests and their lists as Avro files, in versions 2 and 3.

pyiceberg reads both as version 2 has them, and writes data manifests of version 2 alone. Without
the three fields of an entry that say where its deletion vector is, Iceberg-Spark passes over the
vector in silence, so all of version 3 is read and written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from copy import copy
from typing import Any, Final

from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.avro.file import AvroFile, AvroOutputFile
from pyiceberg.io import InputFile, OutputFile
from pyiceberg.manifest import (
    DATA_FILE_TYPE,
    MANIFEST_ENTRY_SCHEMAS,
    MANIFEST_LIST_FILE_SCHEMAS,
    DataFile,
    DataFileContent,
    FileFormat,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestListWriterV2,
    ManifestWriterV2,
    PartitionFieldSummary,
)
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadataV2, TableMetadataV3
from pyiceberg.types import NestedField, StructType

from iceberg_format.files import TableFiles

CODEC: Final[AvroCompressionCodec] = "deflate"
SECOND: Final = 2
THIRD: Final = 3
"""The version of the format that has deletion vectors and ids of rows."""
Metadata = TableMetadataV2 | TableMetadataV3
"""Metadata of the versions that are written here."""
# places of the fields that version 3 adds
_FIRST_ROW_ID: Final = 16
_REFERENCED: Final = 17
_OFFSET: Final = 18
_SIZE: Final = 19
_LIST_FIRST_ROW_ID: Final = 15


def first_row_id(file: DataFile) -> int | None:
    """Id of a data file's first row; ``None`` in version 2."""
    found: int | None = file[_FIRST_ROW_ID]
    return found


def referenced_file(file: DataFile) -> str | None:
    """The data file that deletions say they are about."""
    found: str | None = file[_REFERENCED]
    return found


def vector_place(file: DataFile) -> tuple[int, int] | None:
    """Offset and size of a deletion vector in its file."""
    offset, size = file[_OFFSET], file[_SIZE]
    return None if offset is None or size is None else (offset, size)


def new_file(**fields: Any) -> DataFile:
    """A file of a manifest; fields that are left out are null."""
    struct = DATA_FILE_TYPE[THIRD]
    return DataFile(*(fields.pop(one.name, None) for one in struct.fields))


def read_list(list_file: InputFile) -> Iterator[ManifestFile]:
    """Yield the manifests that a list names."""
    with AvroFile[ManifestFile](
        list_file,
        MANIFEST_LIST_FILE_SCHEMAS[THIRD],
        read_types={-1: ManifestFile, 508: PartitionFieldSummary},
        read_enums={517: ManifestContent},
    ) as reader:
        yield from reader


def read_entries(files: TableFiles, manifest: ManifestFile) -> Iterator[ManifestEntry]:
    """Yield live entries of a manifest, with what they inherit."""
    next_row_id = manifest[_LIST_FIRST_ROW_ID]
    with AvroFile[ManifestEntry](
        files.new_input(manifest.manifest_path),
        MANIFEST_ENTRY_SCHEMAS[THIRD],
        read_types={-1: ManifestEntry, 2: DataFile},
        read_enums={0: ManifestEntryStatus, 101: FileFormat, 134: DataFileContent},
    ) as reader:
        for entry in reader:
            if entry.status is ManifestEntryStatus.DELETED:
                continue
            is_new = manifest.sequence_number == 0 or entry.status is ManifestEntryStatus.ADDED
            if entry.snapshot_id is None and manifest.added_snapshot_id is not None:
                entry.snapshot_id = manifest.added_snapshot_id
            if entry.sequence_number is None and is_new:
                entry.sequence_number = manifest.sequence_number
            if entry.file_sequence_number is None and is_new:
                entry.file_sequence_number = manifest.sequence_number
            file = entry.data_file
            file.spec_id = manifest.partition_spec_id
            if next_row_id is not None and first_row_id(file) is None:
                file[_FIRST_ROW_ID] = next_row_id
                next_row_id += file.record_count
            yield entry


class ManifestOutput(ManifestWriterV2):
    """Writes a manifest of data files, or of files of deletions."""

    def __init__(
        self,
        metadata: Metadata,
        content: ManifestContent,
        spec: PartitionSpec,
        output: OutputFile,
        snapshot_id: int,
    ) -> None:
        super().__init__(spec, metadata.schema(), output, snapshot_id, CODEC)
        self._number, self._of = metadata.format_version, content

    def content(self) -> ManifestContent:
        """What the manifest lists."""
        return self._of

    @property
    def version(self) -> Any:
        """Version of the format."""
        return self._number

    @property
    def _meta(self) -> dict[str, str]:
        kind = "data" if self._of is ManifestContent.DATA else "deletes"
        return {**super()._meta, "content": kind}

    def new_writer(self) -> AvroOutputFile[ManifestEntry]:
        """Open the file."""
        return AvroOutputFile[ManifestEntry](
            output_file=self._output_file,
            file_schema=self._entries(self._number),
            record_schema=self._entries(THIRD),
            schema_name="manifest_entry",
            metadata=self._meta,
        )

    def to_manifest_file(self) -> ManifestFile:
        """The manifest, as lists have it."""
        made = super().to_manifest_file()
        return ManifestFile(*(made[at] for at in range(_LIST_FIRST_ROW_ID)), None)

    def _entries(self, version: int) -> Schema:
        fields = [*DATA_FILE_TYPE[version].fields]
        if version < THIRD:
            # a field that version 2 has as well
            fields.append(DATA_FILE_TYPE[THIRD].fields[_REFERENCED])
        partition = StructType(*self._spec.partition_type(self._schema).fields)
        file = StructType(
            *(
                NestedField(one.field_id, one.name, partition, required=True)
                if one.name == "partition"
                else one
                for one in fields
            )
        )
        return Schema(
            *(
                NestedField(one.field_id, one.name, file, required=True)
                if one.name == "data_file"
                else one
                for one in MANIFEST_ENTRY_SCHEMAS[version].fields
            )
        )


class _ListOutput(ManifestListWriterV2):
    """Writes a list of version 3, which gives rows ids."""

    def __init__(
        self,
        output: OutputFile,
        snapshot_id: int,
        parent: int | None,
        number: int,
        first: int,
    ) -> None:
        super().__init__(output, snapshot_id, parent, number, CODEC)
        self._format_version = THIRD
        self._meta |= {"format-version": str(THIRD), "first-row-id": str(first)}
        self.next_row_id = first

    def __enter__(self) -> _ListOutput:
        self._writer = AvroOutputFile[ManifestFile](
            output_file=self._output_file,
            record_schema=MANIFEST_LIST_FILE_SCHEMAS[THIRD],
            file_schema=MANIFEST_LIST_FILE_SCHEMAS[THIRD],
            schema_name="manifest_file",
            metadata=self._meta,
        )
        self._writer.__enter__()
        return self

    def prepare_manifest(self, manifest_file: ManifestFile) -> ManifestFile:
        """Give numbers that only the commit knows."""
        made = copy(super().prepare_manifest(manifest_file))
        if made.content is ManifestContent.DATA and made[_LIST_FIRST_ROW_ID] is None:
            made = ManifestFile(*(made[at] for at in range(_LIST_FIRST_ROW_ID)), self.next_row_id)
            self.next_row_id += (made.added_rows_count or 0) + (made.existing_rows_count or 0)
        return made


def write_list(
    metadata: Metadata,
    output: OutputFile,
    manifests: Iterable[ManifestFile],
    snapshot_id: int,
    parent: int | None,
) -> dict[str, int]:
    """Write a snapshot's list of manifests; return the snapshot's numbers.

    Its sequence number, and in version 3 the first id of a row and how many rows get one.
    """
    number = metadata.last_sequence_number + 1
    numbers = {"sequence-number": number}
    if isinstance(metadata, TableMetadataV2):
        with ManifestListWriterV2(output, snapshot_id, parent, number, CODEC) as second:
            second.add_manifests([*manifests])
        return numbers
    first = metadata.next_row_id or 0
    with _ListOutput(output, snapshot_id, parent, number, first) as third:
        third.add_manifests([*manifests])
    return {**numbers, "first-row-id": first, "added-rows": third.next_row_id - first}
