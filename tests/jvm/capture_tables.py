"""Let Apache Hudi write the tables of ``tests/hudi_tables``, and read their rows.

``make captured-tables`` runs it. The rows are the same every time; ids and times are not, so it
writes all of the tables. Hudi keeps absolute paths of files in places: the tables are written below
``/tmp/hudi_tables`` on every machine, in UTC.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from tests.hudi_tables import (
    BUCKETS,
    COMMIT_TIME,
    COMPLEX,
    EVOLVED,
    EXPECTED,
    LOG_COMPACTED,
    LOGS_6,
    LOGS_9,
    NO_METADATA,
    OWN,
    PARQUET_LOGS,
    PARTIAL,
    PLAIN,
    ROLLBACK,
    TIMESTAMP,
    TRIPS,
    TXNS,
    VERSION_6,
    plain,
)
from tests.jvm.engines import HUDI, Engine, Kind
from tests.jvm.prepare import OLDER, ROOT

COMMAND: Final = "make captured-tables"
FOLDER: Final = Path("/tmp/hudi_tables")
"""Where the tables are while they are written."""
HUDI_0_15: Final = replace(HUDI, jars=f"{OLDER}/hudi_0_15")
HUDI_1_0: Final = replace(HUDI, jars=f"{OLDER}/hudi_1_0")
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)

Row = dict[str, Any]


# --- rows -----------------------------------------------------------------------------------------

ALL_TYPES: Final = {
    "id": "int",
    "name": "string",
    "isActive": "boolean",
    "byteField": "tinyint",
    "shortField": "smallint",
    "intField": "int",
    "longField": "bigint",
    "floatField": "float",
    "doubleField": "double",
    "decimalField": "decimal(10,5)",
    "dateField": "date",
    "timestampField": "timestamp",
    "binaryField": "binary",
    "arrayField": "array<struct<word:string,number:int>>",
    "mapField": "map<string,struct<weight:double,ripe:boolean>>",
    "structField": "struct<place:string,level:int,inner:struct<height:double,deep:boolean>>",
}
PAYMENT: Final = {
    "txn_id": "string",
    "account_id": "string",
    "txn_ts": "bigint",
    "txn_datetime": "timestamp",
    "txn_date": "date",
    "amount": "decimal(15,2)",
    "currency": "string",
    "txn_type": "string",
    "merchant_name": "string",
    "is_international": "boolean",
    "fee_amount": "decimal(10,2)",
    "txn_metadata": "string",
}
TRIP: Final = {
    "ts": "bigint",
    "uuid": "string",
    "rider": "string",
    "driver": "string",
    "fare": "double",
    "city": "string",
}
MAP: Final = pa.map_(pa.string(), pa.struct([("weight", pa.float64()), ("ripe", pa.bool_())]))
"""That of the rows, where Arrow does not find it out."""
START: Final = datetime(2024, 1, 15, 9, 30, tzinfo=UTC)
NAMES: Final = ("Ada", "Bela", "Cleo", "Dora")
SHOPS: Final = ("Alder Books", "Birch Bikes", "Cedar Café", "Daisy $ Dry", None)


def of_all_types(number: int) -> Row:
    """Return a row with a value of each type, in one of three partitions."""
    drawn = random.Random(number)
    words = ("quay", "rope", "sail", "tide")
    return {
        "id": number,
        "name": NAMES[number - 1],
        "isActive": number % 2 == 1,
        "byteField": (10, 20, 10, 30)[number - 1],
        "shortField": (300, 100, 300, 100)[number - 1],
        "intField": drawn.randrange(100_000),
        "longField": drawn.randrange(10**12),
        "floatField": float(number),
        "doubleField": drawn.random(),
        "decimalField": Decimal(drawn.randrange(10**9)).scaleb(-5),
        "dateField": START.date() + timedelta(number),
        "timestampField": START + timedelta(number, microseconds=number),
        "binaryField": drawn.randbytes(8),
        "arrayField": [
            {"word": word, "number": drawn.randrange(100)} for word in drawn.sample(words, 2)
        ],
        "mapField": [
            (word, {"weight": drawn.random(), "ripe": drawn.random() < 0.5})
            for word in drawn.sample(words, 2)
        ],
        "structField": {
            "place": drawn.choice(words),
            "level": number,
            "inner": {"height": drawn.random(), "deep": number % 2 == 0},
        },
    }


def payment(number: int) -> Row:
    """Return a payment: of three regions in turn, a few a day, the first at :data:`START`."""
    drawn = random.Random(f"payment {number}")
    moment = START + timedelta(days=(number - 1) // 2, minutes=drawn.randrange(60) * (number > 1))
    return {
        "txn_id": f"TXN-{number:03}",
        "account_id": f"ACC-{drawn.randrange(5)}",
        "txn_ts": 1_700_000_000_000 + number,
        "txn_datetime": moment,
        "txn_date": moment.date(),
        "amount": Decimal(drawn.randrange(1_000, 10_000) * 10 ** drawn.randrange(3)).scaleb(-2),
        "currency": drawn.choice(("EUR", "GBP", "USD")),
        "txn_type": drawn.choice(("debit", "transfer")),
        "merchant_name": drawn.choice(SHOPS),
        "is_international": drawn.random() < 0.5,
        "fee_amount": Decimal(drawn.randrange(5_000)).scaleb(-2),
        "txn_metadata": json.dumps({"risk": drawn.random()}),
        "region": REGIONS[number],
        "ts_epoch": int(moment.timestamp()),
    }


REGIONS: Final = {
    number: region
    for region, numbers in {
        "us": (1, 2, 3, 13, 14, 17),
        "eu": (4, 5, 6, 9, 10, 11, 12, 18),
        "apac": (7, 8, 15, 16),
    }.items()
    for number in numbers
}


def trip(number: int) -> Row:
    """Return a trip of one of three cities."""
    drawn = random.Random(number)
    return {
        "ts": 1_695_000_000_000 + number,
        "uuid": f"{drawn.getrandbits(128):032x}",
        "rider": f"rider-{'ABCDEFGH'[number - 1]}",
        "driver": f"driver-{drawn.randrange(4)}",
        "fare": round(drawn.uniform(10, 100), 2),
        "city": ("oslo", "oslo", "rome", "lima", "oslo", "rome", "lima", "oslo")[number - 1],
    }


# --- tables ---------------------------------------------------------------------------------------


NONE: Final[Mapping[str, str]] = {}
NO_METADATA_TABLE: Final = {"hoodie.metadata.enable": "false"}
RECORD_INDEX: Final = {"hoodie.metadata.record.index.enable": "true"}
UPSERTS: Final = {"hoodie.spark.sql.insert.into.operation": "upsert"}
PLAIN_PATHS: Final = {"hoodie.datasource.write.hive_style_partitioning": "false"}
LOCK: Final = {
    "hoodie.write.lock.provider": "org.apache.hudi.client.transaction.lock.InProcessLockProvider"
}
"""Hudi does not build an index without one."""
LATER: Final = 1_800_000_000_000
"""A value of the ordering field above those of all payments."""


@dataclass
class Writing:
    """A table that is made by statements of an engine."""

    engine: Engine
    name: str
    columns: Mapping[str, str] = field(default_factory=dict)

    @property
    def short(self) -> str:
        """The name that the table has for Hudi."""
        return self.name.rpartition("__")[2]

    @property
    def path(self) -> Path:
        return FOLDER / self.short

    def create(
        self,
        columns: Mapping[str, str],
        key: str,
        ordering: str,
        partitions: Sequence[str] = (),
        options: Mapping[str, str] = NONE,
    ) -> None:
        """Create the table; inserted rows get files of their own."""
        self.columns = {
            **{name: kind for name, kind in columns.items() if name not in partitions},
            **{name: columns[name] for name in partitions},
        }
        fields = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        named = {
            "type": self.name.partition("__")[0],
            "primaryKey": key,
            "preCombineField": ordering,
            "hoodie.parquet.small.file.limit": "0",
            **options,
        }
        properties = ", ".join(f"'{name}' = '{value}'" for name, value in named.items())
        parts = f"partitioned by ({', '.join(partitions)})" if partitions else ""
        self.sql(
            f"create table {{t}} ({fields}) using hudi tblproperties ({properties}) {parts}"
            f" location 'file://{self.path}'"
        )

    def insert(self, *rows: Row, verb: str = "insert into {t}") -> None:
        """Insert rows in one task."""
        file = self.engine.folder / "rows.parquet"
        values = {
            name: pa.array([row[name] for row in rows], MAP if name == "mapField" else None)
            for name in self.columns
        }
        pq.write_table(pa.table(values), file)
        fields = ", ".join(f"cast({name} as {kind})" for name, kind in self.columns.items())
        self.sql(f"{verb} select /*+ coalesce(1) */ {fields} from parquet.`{file}`")

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        """Run a statement, where ``{t}`` is the table."""
        return self.engine.sql(text.format(t=self.short))


def all_types(
    table: Writing, key: str, partitions: Sequence[str] = (), options: Mapping[str, str] = NONE
) -> None:
    """Make a table with a column of each type by two upserts of rows."""
    given = {**NO_METADATA_TABLE, **UPSERTS, **options}
    table.create(ALL_TYPES, key, "longField", partitions, given)
    table.insert(*map(of_all_types, (1, 2, 3)))
    table.insert({**of_all_types(1), "isActive": False, "longField": 10**12}, of_all_types(4))


def timestamp_keys(table: Writing) -> None:
    """Make partitions of days; Hudi's updates leave the column as texts in files."""
    options = {
        **PLAIN_PATHS,
        "hoodie.table.keygenerator.class": "org.apache.hudi.keygen.TimestampBasedKeyGenerator",
        "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
        "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
    }
    columns = {**PAYMENT, "ts_epoch": "bigint"}
    table.create(columns, "txn_id", "txn_ts", ["ts_epoch"], {**RECORD_INDEX, **options})
    table.insert(*map(payment, (1, 2, 3, 4)))
    # a second row of its key: a plain insert looks for none
    again = {**payment(1), "txn_type": "reversal", "txn_ts": LATER}
    table.insert(again, payment(5), payment(6))
    change(table, 3)
    delete(table, 4)


def txns(table: Writing) -> None:
    """Make every partition of a metadata table, which is compacted meanwhile, and a clustering."""
    columns = {**PAYMENT, "region": "string"}
    options = {**RECORD_INDEX, "hoodie.datasource.overwrite.mode": "DYNAMIC"}
    table.create(columns, "txn_id", "txn_ts", ["region"], options)
    table.insert(*map(payment, range(1, 9)))
    change_some(table)
    table.insert(payment(9), payment(10))
    table.insert(payment(11), payment(12), verb="insert overwrite table {t} partition (region)")
    table.insert(payment(13), payment(14))
    table.insert(payment(15), payment(16))
    table.sql("call run_clustering(table => '{t}')")
    table.insert(payment(17), payment(18))
    with table.engine.configured(LOCK):
        table.sql("create index merchant_idx on {t} (merchant_name)")
        table.sql("create index txn_date_idx on {t} (txn_date)")


def change_some(table: Writing) -> None:
    """Change three payments of the first eight, and delete two."""
    change(table, 1)
    delete(table, 2)
    change(table, 4)
    delete(table, 5)
    change(table, 7)


def change(table: Writing, number: int) -> None:
    table.sql(
        f"update {{t}} set txn_type = 'reversal', txn_ts = {LATER} where txn_id = 'TXN-{number:03}'"
    )


def delete(table: Writing, number: int) -> None:
    table.sql(f"delete from {{t}} where txn_id = 'TXN-{number:03}'")


def trips(table: Writing) -> None:
    """Make eight inserts, three updates and a delete, in log files that are compacted in part."""
    options = {
        "hoodie.metadata.index.column.stats.enable": "true",
        "hoodie.compact.inline": "true",
        "hoodie.compact.inline.max.delta.commits": "4",
    }
    table.create(TRIP, "uuid", "ts", ["city"], {**RECORD_INDEX, **UPSERTS, **options})
    table.insert(*map(trip, range(1, 9)))
    table.sql("create index rider_idx on {t} (rider)")
    for rider in "AG":
        table.sql(f"update {{t}} set fare = 0, ts = ts + 100 where rider = 'rider-{rider}'")
    table.sql("delete from {t} where rider = 'rider-F'")
    table.sql("update {t} set fare = 1.5, ts = ts + 100 where rider = 'rider-C'")


def rollback(table: Writing) -> None:
    """Make a commit that is rolled back, between two that stay."""
    table.create(PAYMENT, "txn_id", "txn_ts", options=RECORD_INDEX)
    table.insert(*map(payment, (1, 2, 3)))
    change(table, 2)
    time = max(one.name for one in (table.path / ".hoodie/timeline").glob("*_*.deltacommit"))
    [[done]] = table.sql(
        f"call rollback_to_instant(table => '{{t}}', instant_time => '{time.partition('_')[0]}')"
    )
    assert done
    table.insert(payment(4))


def no_metadata(table: Writing) -> None:
    """Make log files, a compaction and a clustering."""
    table.create(PAYMENT, "txn_id", "txn_ts", options=NO_METADATA_TABLE)
    table.insert(*map(payment, range(1, 9)))
    change_some(table)
    for number in (9, 11, 13):
        table.insert(payment(number), payment(number + 1))
    table.sql("call run_compaction(op => 'schedule', table => '{t}')")
    table.sql("call run_compaction(op => 'run', table => '{t}')")
    table.sql("call run_clustering(table => '{t}')")
    table.insert(payment(15), payment(16))


def partial(table: Writing) -> None:
    """Make blocks of partial updates by statements that set some columns."""
    table.create(TRIP, "uuid", "ts", ["city"], NO_METADATA_TABLE)
    table.insert(*map(trip, range(1, 5)))
    for number, fare in ((1, 111.5), (3, 222.5)):
        own = trip(number)
        source = (
            f"select '{own['uuid']}' as uuid, '{own['city']}' as city, {fare} as fare,"
            f" cast({own['ts'] + 1} as bigint) as ts"
        )
        table.sql(
            f"merge into {{t}} t using ({source}) s on t.uuid = s.uuid"
            " when matched then update set fare = s.fare, ts = s.ts"
        )
    table.sql("update {t} set driver = 'nobody' where rider = 'rider-A'")
    table.sql("delete from {t} where rider = 'rider-D'")


def buckets(table: Writing) -> None:
    """Make file groups of buckets, of which some may have log files alone."""
    options = {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"}
    table.create(TRIP, "uuid", "ts", options={**NO_METADATA_TABLE, **UPSERTS, **options})
    table.insert(*map(trip, range(1, 5)))
    table.insert(*({**trip(number), "fare": 5.5, "ts": LATER} for number in (1, 3, 6, 8)))
    table.sql("delete from {t} where rider = 'rider-C'")


def commit_time(table: Writing) -> None:
    """Make versions of rows of which the later written one counts."""
    options = {"hoodie.record.merge.mode": "COMMIT_TIME_ORDERING"}
    table.create(TRIP, "uuid", "ts", options={**NO_METADATA_TABLE, **UPSERTS, **options})
    table.insert(*map(trip, range(1, 6)))
    table.insert(*({**trip(number), "fare": 1.5, "ts": 1} for number in (1, 2)))
    table.sql("delete from {t} where rider = 'rider-C'")
    table.insert({**trip(2), "fare": 2.5, "ts": 0}, {**trip(3), "fare": 3.5, "ts": 0})


def log_compacted(table: Writing) -> None:
    """Make a log compaction, and a write after it."""
    options = {
        "hoodie.log.compaction.enable": "true",
        "hoodie.log.compaction.inline": "true",
        "hoodie.log.compaction.blocks.threshold": "2",
    }
    table.create(TRIP, "uuid", "ts", options={**NO_METADATA_TABLE, **UPSERTS, **options})
    table.insert(*map(trip, range(1, 5)))
    for number in range(1, 5):
        table.insert({**trip(1), "fare": float(number), "ts": LATER + number})
    table.insert({**trip(2), "fare": 20.0, "ts": LATER})


def evolved(table: Writing) -> None:
    """Make blocks of two schemas, of which the later one has a column more."""
    table.create(TRIP, "uuid", "ts", options={**NO_METADATA_TABLE, **UPSERTS})
    table.insert(*map(trip, range(1, 5)))
    table.insert({**trip(1), "fare": 1.5, "ts": LATER})
    table.sql("alter table {t} add columns (note string)")
    table.sql("update {t} set note = 'paid', ts = ts + 1 where rider = 'rider-B'")


PARQUET_BLOCKS: Final = {"hoodie.logfile.data.block.format": "parquet"}

CAPTURES: Final[dict[str, tuple[Kind, Callable[[Writing], None]]]] = {
    VERSION_6[0]: (HUDI_0_15, lambda table: all_types(table, "id")),
    VERSION_6[1]: (HUDI_0_15, lambda table: all_types(table, "id", ["byteField"], PLAIN_PATHS)),
    COMPLEX: (HUDI_1_0, lambda table: all_types(table, "id,name", ["byteField", "shortField"])),
    PLAIN: (HUDI_1_0, lambda table: all_types(table, "id")),
    TIMESTAMP: (HUDI, timestamp_keys),
    TXNS: (HUDI, txns),
    TRIPS: (HUDI_1_0, trips),
    ROLLBACK: (HUDI, rollback),
    NO_METADATA: (HUDI, no_metadata),
    LOGS_6: (HUDI_0_15, lambda table: all_types(table, "id", ["byteField"])),
    LOGS_9: (HUDI, lambda table: all_types(table, "id")),
    PARQUET_LOGS: (HUDI, lambda table: all_types(table, "id", options=PARQUET_BLOCKS)),
    PARTIAL: (HUDI, partial),
    BUCKETS: (HUDI, buckets),
    COMMIT_TIME: (HUDI, commit_time),
    LOG_COMPACTED: (HUDI, log_compacted),
    EVOLVED: (HUDI_1_0, evolved),
}


# --- files ----------------------------------------------------------------------------------------


def expectation(engine: Engine, table: Writing) -> dict[str, Any]:
    """Return the rows as Hudi reads them, sorted by their keys."""
    found = engine.read(table.path).sort_by(
        [("_hoodie_record_key", "ascending"), ("_hoodie_commit_time", "ascending")]
    )
    own = [name for name in found.column_names if not name.startswith("_hoodie_")]
    return {
        "hudi": engine.kind.version,
        "spark": engine.versions["PySpark"],
        "rows": found.num_rows,
        "record_keys": found["_hoodie_record_key"].to_pylist(),
        "columns": found.column_names,
        "values": [[plain(row[name]) for name in own] for row in found.to_pylist()],
    }


def archive(table: Writing) -> None:
    """Zip a table, its empty folders too, unless a file names a folder of this machine."""
    own = [str(path).encode() for path in (ROOT, Path.home(), table.engine.folder)]
    target = OWN.folder / f"{table.name}.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        for path in sorted(table.path.rglob("*")):
            if path.suffix == ".crc":
                continue
            name = f"{table.short}/{path.relative_to(table.path)}{'/' if path.is_dir() else ''}"
            content = b"" if path.is_dir() else path.read_bytes()
            if any(one in content for one in own):
                raise SystemExit(f"{path} names a folder of this machine")
            zipped.writestr(zipfile.ZipInfo(name, _EPOCH), content, zipfile.ZIP_DEFLATED)


def main() -> None:
    """Make every table, or those that are named."""
    FOLDER.mkdir()
    OWN.folder.mkdir(exist_ok=True)
    file = OWN.folder / EXPECTED
    named = sys.argv[1:] or list(CAPTURES)
    expected = json.loads(file.read_text(encoding="utf-8"))["tables"] if sys.argv[1:] else {}
    try:
        with tempfile.TemporaryDirectory() as scratch:
            for number, kind in enumerate((HUDI_0_15, HUDI_1_0, HUDI)):
                engine = Engine(kind, Path(scratch, str(number)))
                try:
                    for name, (of, make) in CAPTURES.items():
                        if of == kind and name in named:
                            print(f"{name}: {kind.version}", flush=True)
                            table = Writing(engine, name)
                            make(table)
                            expected[name] = expectation(engine, table)
                            archive(table)
                finally:
                    engine.stop()
    finally:
        shutil.rmtree(FOLDER)
    # a table a line
    lines = [
        f"  {json.dumps(name)}: {json.dumps(expected[name], ensure_ascii=False)}"
        for name in sorted(expected)
    ]
    text = f'{{\n "made by": "{COMMAND}",\n "tables": {{\n' + ",\n".join(lines) + "\n }\n}\n"
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
