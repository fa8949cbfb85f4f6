"""Tables that Apache Hudi wrote, and their rows as another reader has them.

Those of ``tests/hudi_tables`` are always there: ``make captured-tables`` makes them again. Where
the folder of the tables that hudi-rs tests itself with is there, tests run on these as well.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest

HERE: Final = Path(__file__).resolve().parent
EXPECTED: Final = "expected.json"

COMPLEX: Final = "cow__v8_complexkeygen_hivestyle"
PLAIN: Final = "cow__v8_nonpartitioned"
TIMESTAMP: Final = "cow__v9_timebasedkeygen_unixtimestamp"
TXNS: Final = "cow__v9_txns_simple_meta"
TRIPS: Final = "mor__avro__v8_trips_8i3u1d"
ROLLBACK: Final = "mor__avro__v9_nonpartitioned_rollback"
NO_METADATA: Final = "mor__avro__v9_txns_nonpart_nometa"
LOGS_6: Final = "mor__avro__v6_types"
LOGS_9: Final = "mor__avro__v9_types"
PARQUET_LOGS: Final = "mor__parquet__v9_parquet_types"
PARTIAL: Final = "mor__avro__v9_partial"
BUCKETS: Final = "mor__avro__v9_buckets"
COMMIT_TIME: Final = "mor__avro__v9_commit_time"
LOG_COMPACTED: Final = "mor__avro__v9_log_compacted"
EVOLVED: Final = "mor__avro__v8_evolved"
VERSION_6: Final = ("cow__v6_nonpartitioned", "cow__v6_simplekeygen_nonhivestyle")
COPY_ON_WRITE: Final = (*VERSION_6, COMPLEX, PLAIN, TIMESTAMP, TXNS)
MERGE_ON_READ: Final = (TRIPS, ROLLBACK, NO_METADATA)
OWN_LOGS: Final = (
    LOGS_6,
    LOGS_9,
    PARQUET_LOGS,
    PARTIAL,
    BUCKETS,
    COMMIT_TIME,
    LOG_COMPACTED,
    EVOLVED,
)
"""Tables with log files that hudi-rs has none of for its own tests."""
ALL: Final = (*COPY_ON_WRITE, *MERGE_ON_READ)
WITH_METADATA: Final = (TIMESTAMP, TXNS, TRIPS, ROLLBACK)
"""Those that have a metadata table."""


RealTables = Callable[[str], Path]


@dataclass(frozen=True)
class Source:
    """A folder with a table of each name.

    ``name``: names the cells of tests. ``folder``: holds the zipped tables, and what is expected of
    them. ``zone``: local time zone of the tables of version 6, which do not name it.
    """

    name: str
    folder: Path
    zone: str

    def unpack(self, table: str, to: Path) -> Path:
        """Unpack a table into a folder that is not there yet; return its path."""
        with zipfile.ZipFile(self.folder / f"{table}.zip") as archive:
            members = [one for one in archive.namelist() if not one.startswith("__MACOSX/")]
            archive.extractall(to, members)
        # a table with a metadata table holds a second table, deeper
        found = to.glob("**/.hoodie/hoodie.properties")
        return min(found, key=lambda path: len(path.parts)).parent.parent

    def expected(self, table: str) -> dict[str, Any]:
        """The number of ``rows``, their sorted ``record_keys``, the ``columns``; of own tables the
        ``values``, too."""
        document = json.loads((self.folder / EXPECTED).read_text(encoding="utf-8"))
        found: dict[str, Any] = document.get("tables", document)[table]
        return found


OWN: Final = Source("own", HERE / "hudi_tables", "UTC")


def sources() -> list[Source]:
    """Every source that is there."""
    default = HERE.parent.parent / "shared" / "hudi_tables"
    folder = Path(os.environ.get("HUDI_REAL_TABLES", default))
    others = [Source("hudi-rs", folder, "America/Chicago")] if folder.is_dir() else []
    return [OWN, *others]


@pytest.fixture(scope="session", params=sources(), ids=lambda source: source.name)
def hudi_tables(request: pytest.FixtureRequest) -> Source:
    """Give each source of tables that Apache Hudi wrote."""
    source: Source = request.param
    return source


@pytest.fixture
def real_tables(hudi_tables: Source, tmp_path: Path) -> RealTables:
    """Give the test its own copy of a table that Apache Hudi wrote, by name."""
    unpacked: dict[str, Path] = {}

    def unpack(name: str) -> Path:
        if name not in unpacked:
            unpacked[name] = hudi_tables.unpack(name, tmp_path / "real" / name)
        return unpacked[name]

    return unpack


def plain(value: Any) -> Any:
    """A value as the expectations have it in JSON."""
    match value:
        case dict():
            return {key: plain(one) for key, one in value.items()}
        case list() | tuple():
            return [plain(one) for one in value]
        case bytes():
            return value.hex()
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
    return value
