"""Options of the ingestion of files, by Hudi Streamer's names."""

from __future__ import annotations

import codecs
from enum import StrEnum
from typing import Final

from hudi_core.config.connector import data_size
from hudi_core.config.options import Group, Option, Options
from hudi_core.config.parsers import member

_STREAMER: Final = "hoodie.streamer."
_SOURCES: Final = "org.apache.hudi.utilities.sources."


class SourceFormat(StrEnum):
    """What the files of a source hold."""

    PARQUET = "parquet"
    JSON = "json"
    """One object in each line."""
    CSV = "csv"
    DMS = "dms"
    """Changes as AWS DMS writes them, in Parquet or CSV: with a column ``Op``."""


SOURCE_CLASSES: Final = {
    f"{_SOURCES}ParquetDFSSource": SourceFormat.PARQUET,
    f"{_SOURCES}JsonDFSSource": SourceFormat.JSON,
    f"{_SOURCES}CsvDFSSource": SourceFormat.CSV,
}
"""What the source classes of Hudi Streamer mean."""


def one_character(text: str) -> str:
    """Parse a character; ``\\t`` is a tab."""
    text = {"\\t": "\t"}.get(text, text)
    if len(text) != 1:
        raise ValueError("it is not one character")
    return text


def encoding(text: str) -> str:
    """Parse the name of an encoding."""
    try:
        return codecs.lookup(text).name
    except LookupError:
        raise ValueError("there is no such encoding") from None


class IngestionConfig(Options, group=Group.INGESTION, former=(_STREAMER, "hoodie.deltastreamer.")):
    """Which files are read, how, and how many at once."""

    root: Option[str | None] = Option(f"{_STREAMER}source.dfs.root")
    """The folder of the files, where the call names none; folders in it are searched too."""
    source_format: Option[SourceFormat | None] = Option(
        "hoodie.ingest.source.format",
        parse=member(SourceFormat, lambda text: SOURCE_CLASSES.get(text) or text.lower()),
        default_text="(by the names of the files)",
        hudi_default="(--source-class JsonDFSSource)",
        reason="Names of files mostly say it.",
    )
    """What the files hold: `parquet`, `json` (an object in each line), `csv`, or `dms` for the
    changes that AWS DMS writes. The classes of Hudi Streamer for such sources are understood
    too."""
    most_bytes: Option[int] = Option(
        "hoodie.ingest.commit.max.bytes",
        default=512 << 20,
        parse=data_size,
        default_text="`512MB`",
        hudi_default="(--source-limit, none)",
        reason="A first run over years of files would have to fit memory.",
    )
    """The files of one commit are no larger together, but for a single one that is. They are held
    in memory while they are written."""
    memory_days: Option[int] = Option(
        "hoodie.ingest.late.files.days",
        default=7,
        hudi_default="0",
        reason="Hudi Streamer passes over files that come late, and over files of the same time.",
    )
    """For how many days before the newest file the names of read files are kept: a file that comes
    late is read as long as its modification time lies within them."""
    sql: Option[str | None] = Option(f"{_STREAMER}transformer.sql")
    """A query in Spark's SQL that makes the rows to write of those of the files, which it names
    `<SRC>`."""
    csv_header: Option[bool] = Option(
        f"{_STREAMER}csv.header",
        default=True,
        hudi_default="false",
        reason="Columns go by their names, and files without them are rare.",
    )
    """Whether the first line of a CSV file names its columns. Where it does not, they are those of
    the table, or of the schema that the call gives, in their order."""
    csv_separator: Option[str] = Option(
        f"{_STREAMER}csv.sep", default=",", parse=one_character, default_text="`,`"
    )
    """The character between the columns of a CSV file."""
    csv_quote: Option[str] = Option(f"{_STREAMER}csv.quote", default='"', parse=one_character)
    """The character around values of a CSV file that hold separators or ends of lines."""
    csv_null: Option[str] = Option(f"{_STREAMER}csv.nullValue", default="", default_text="(empty)")
    """The string that means null in a CSV file."""

    csv_encoding: Option[str] = Option(
        f"{_STREAMER}csv.encoding", default="utf-8", parse=encoding, default_text="`UTF-8`"
    )
    """The encoding of CSV files. A file that is not of it is refused, by its line."""
    csv_infers: Option[bool] = Option(f"{_STREAMER}csv.inferSchema", default=False)
    """Whether new columns of CSV files have the types that their values show. Otherwise they are
    strings. A column is one of numbers only where none loses a digit or a zero."""
    schema_file: Option[str | None] = Option(f"{_STREAMER}schemaprovider.source.schema.file")
    """An Avro schema in JSON, on a disk or in an object store: the types of columns that the table
    does not have yet, where the call gives none."""

    csv_names_columns: Option[bool] = Option(
        "hoodie.ingest.dms.csv.header",
        default=False,
        hudi_default="(no such option)",
        reason="Files of DMS have no such line by default, where others do.",
    )
    """Whether CSV files of AWS DMS begin with the names of their columns (its setting
    `addColumnName`)."""
