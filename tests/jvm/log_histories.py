"""Random histories of merge-on-read tables that Hudi-Spark writes, drawn from a seed.

A history is a kind of table and a way through steps; both follow from its number.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from hudi_core.config.kinds import PayloadKind
from tests.jvm.engines import Engine

Row = dict[str, Any]
Options = Mapping[str, str]

CITIES: Final = ("oslo", "rome", "lima")
START: Final = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
WORDS: Final = ("quay", "rope", "sail", "tide")
ROWS: Final = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("city", pa.string()),
        ("name", pa.string()),
        ("fare", pa.float64()),
        ("number", pa.int32()),
        ("price", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("day", pa.date32()),
        ("paid", pa.bool_()),
        ("bytes", pa.binary()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("level", pa.int32()), ("word", pa.string())])),
        ("Op", pa.string()),
        ("_event_lsn", pa.int64()),
        ("_event_bin_file", pa.string()),
        ("_event_pos", pa.int64()),
        ("_event_seq", pa.string()),
        ("_change_operation_type", pa.string()),
        ("_hoodie_is_deleted", pa.bool_()),
    ]
)
EVENTS: Final = frozenset(
    {"Op", *(name for name in ROWS.names if name.startswith(("_event", "_change")))}
)
"""Columns that payloads of change data decide by."""
NOTE: Final = pa.field("note", pa.string())
"""The column that a step adds."""


@dataclass(frozen=True)
class Kind:
    """How a table is made, and how its logs are written."""

    version: int
    partitioned: bool
    index: str
    ordering: str
    payload: PayloadKind | None
    mode: str
    blocks: str
    positions: bool
    metadata: bool
    deletes: bool
    small_files: bool

    def __str__(self) -> str:
        words = [
            f"v{self.version}",
            "partitioned" if self.partitioned else "flat",
            self.index.lower(),
            self.payload.short_name if self.payload else self.mode.lower() or "inferred",
            self.ordering or "unordered",
            self.blocks,
            "positions" if self.positions else "keys",
            "metadata" if self.metadata else "listing",
        ]
        return "-".join(words)

    @property
    def schema(self) -> pa.Schema:
        """The columns of its rows at first."""
        has_events = self.payload in _EVENT_PAYLOADS
        return pa.schema(
            [
                one
                for one in ROWS
                if (has_events or one.name not in EVENTS)
                and (self.deletes or one.name != "_hoodie_is_deleted")
            ]
        )

    @property
    def options(self) -> dict[str, str]:
        """Options of every write."""
        found = {
            "hoodie.table.name": "logs",
            "hoodie.datasource.write.table.type": "MERGE_ON_READ",
            "hoodie.datasource.write.recordkey.field": "id",
            "hoodie.datasource.write.partitionpath.field": "city" if self.partitioned else "",
            "hoodie.write.table.version": str(self.version),
            "hoodie.write.auto.upgrade": "false",
            "hoodie.logfile.data.block.format": self.blocks,
            "hoodie.write.record.positions": str(self.positions).lower(),
            "hoodie.metadata.enable": str(self.metadata).lower(),
            "hoodie.parquet.small.file.limit": "104857600" if self.small_files else "0",
            **_INDEXES[self.index],
            **_QUIET,
        }
        if self.metadata:
            found |= _RANGES
        if self.ordering:
            found["hoodie.table.ordering.fields"] = self.ordering
        if self.payload is not None:
            found["hoodie.datasource.write.payload.class"] = self.payload.value
        if self.mode:
            found["hoodie.write.record.merge.mode"] = self.mode
        return found


_EVENT_PAYLOADS: Final = {
    PayloadKind.AWS_DMS,
    PayloadKind.POSTGRES_DEBEZIUM,
    PayloadKind.MYSQL_DEBEZIUM,
}
_INDEXES: Final[Mapping[str, Options]] = {
    "SIMPLE": {"hoodie.index.type": "SIMPLE"},
    "BLOOM": {"hoodie.index.type": "BLOOM"},
    "GLOBAL_SIMPLE": {"hoodie.index.type": "GLOBAL_SIMPLE"},
    "RECORD_INDEX": {
        "hoodie.index.type": "RECORD_INDEX",
        "hoodie.metadata.record.index.enable": "true",
        "hoodie.metadata.record.index.min.filegroup.count": "1",
    },
    "BUCKET": {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "2"},
    "CONSISTENT": {
        "hoodie.index.type": "BUCKET",
        "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
        "hoodie.bucket.index.num.buckets": "2",
        "hoodie.bucket.index.min.num.buckets": "2",
    },
}
_BUCKETS: Final = ("BUCKET", "CONSISTENT")
_RANGES: Final = {
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.column.stats.column.list": "ts,city,name,fare,number,price,at,day",
    "hoodie.metadata.index.partition.stats.enable": "true",
}
_QUIET: Final = {
    "hoodie.clean.automatic": "false",
    "hoodie.archive.automatic": "false",
    "hoodie.compact.inline": "false",
    "hoodie.embed.timeline.server": "false",
    "hoodie.insert.shuffle.parallelism": "1",
    "hoodie.upsert.shuffle.parallelism": "1",
    "hoodie.bulkinsert.shuffle.parallelism": "1",
    "hoodie.delete.shuffle.parallelism": "1",
    "hoodie.simple.index.parallelism": "1",
    "hoodie.bloom.index.parallelism": "1",
    "hoodie.parquet.compression.codec": "zstd",
}
"""Services run where a step says so, in few tasks."""
_INLINE: Final = {
    "hoodie.compact.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
}
_SCHEDULED: Final = {
    "hoodie.compact.schedule.inline": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
}
_CLUSTERING: Final = {
    "hoodie.clustering.inline": "true",
    "hoodie.clustering.inline.max.commits": "1",
}
_CLEAN: Final = {"hoodie.clean.automatic": "true", "hoodie.clean.commits.retained": "1"}
_NO_METADATA_COMPACTION: Final = {"hoodie.metadata.compact.max.delta.commits": "100"}
"""Hudi does not roll back what its metadata table has compacted."""
_LOG_COMPACTION: Final = {
    "hoodie.log.compaction.enable": "true",
    "hoodie.log.compaction.inline": "true",
    "hoodie.log.compaction.blocks.threshold": "2",
}


def kind_of(number: int) -> Kind:
    """Return the kind of table of a history."""
    drawn = random.Random(f"kind {number}")
    version = 8 + number % 2
    blocks = ("avro", "parquet")[number // 2 % 2]
    positions = number // 4 % 3 > 0
    index = drawn.choices(list(_INDEXES), (4, 3, 1, 2, 3, 1))[0]
    ordering, payload, mode = drawn.choice(_MERGING if version == 9 else _MERGING_8)
    if payload is PayloadKind.MYSQL_DEBEZIUM:
        blocks = "avro"  # by the strings in Parquet blocks Hudi-Spark merges at random
    return Kind(
        version=version,
        partitioned=drawn.random() < 0.6,
        index=index,
        ordering=ordering,
        payload=payload,
        mode=mode,
        blocks=blocks,
        positions=positions,
        metadata=index == "RECORD_INDEX" or drawn.random() < 0.4,
        deletes=drawn.random() < 0.5,
        small_files=drawn.random() < 0.5,
    )


_COMMIT, _EVENT = "COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING"
Merging = tuple[str, PayloadKind | None, str]
_MERGING: Final[Sequence[Merging]] = (
    ("ts", None, ""),
    ("ts", None, ""),
    ("ts", None, _EVENT),
    ("ts,number", None, ""),
    ("ts", None, _COMMIT),
    ("", None, ""),
    ("", None, _COMMIT),
    ("ts", PayloadKind.DEFAULT, ""),
    ("ts", PayloadKind.LATEST, ""),
    ("ts", PayloadKind.PARTIAL_UPDATE, ""),
    ("ts", PayloadKind.NON_DEFAULTS, ""),
    ("ts", PayloadKind.AWS_DMS, ""),
    ("", PayloadKind.POSTGRES_DEBEZIUM, ""),
    ("", PayloadKind.MYSQL_DEBEZIUM, ""),
)
_MERGING_8: Final[Sequence[Merging]] = (
    ("ts", None, ""),
    ("ts", None, _EVENT),
    ("ts", None, _COMMIT),
    ("", None, ""),
    ("", None, _COMMIT),
    ("ts", PayloadKind.DEFAULT, ""),
    ("ts", PayloadKind.EVENT_TIME, ""),
    ("ts", PayloadKind.LATEST, ""),
    ("ts", PayloadKind.PARTIAL_UPDATE, ""),
    ("ts", PayloadKind.NON_DEFAULTS, ""),
    ("ts", PayloadKind.AWS_DMS, ""),
)


@dataclass
class History:
    """A table that steps are taken on.

    ``number``: what is drawn follows from it. ``keys``: of the rows that the table has, as a reader
    found them. ``taken``: names of the steps so far.
    """

    number: int
    kind: Kind
    engine: Engine
    path: Path
    schema: pa.Schema = field(init=False)
    taken: list[str] = field(default_factory=list)
    keys: frozenset[int] = frozenset()
    drawn: random.Random = field(init=False)
    name: str = field(default_factory=lambda: f"logs_{uuid.uuid4().hex}")
    _keys: int = 0

    def __post_init__(self) -> None:
        self.schema = self.kind.schema
        self.drawn = random.Random(f"steps {self.number}")

    def begin(self) -> None:
        """Make the table, of a few rows."""
        self.insert(self.drawn.randrange(15, 40), "insert")
        self.taken.append("insert")

    def step(self) -> str:
        """Take a drawn step, and return what it was."""
        steps, weights = zip(*_STEPS.items(), strict=True)
        name = self.drawn.choices(steps, weights)[0]
        if name == "merge_into" and self.kind.deletes:
            name = "update"  # Hudi-Spark could not read what it writes
        if name == "merge_into" and self.kind.index == "CONSISTENT":
            # deletes of a group without a base file are in logs named by an earlier instant: to
            # Hudi-Spark they come before the updates that they follow, which have no row then
            name = "upsert"
        if name == "compact_logs" and "merge_into" in self.taken:
            name = "compact_inline"  # Hudi-Spark does not compact updates of some columns
        if self.has_several_orders:
            name = _WITHOUT_NAME.get(name, name)
        self.taken.append(name)
        getattr(self, f"_{name}")()
        return str(name)

    @property
    def has_several_orders(self) -> bool:
        """Whether there are several ordering fields: Hudi-Spark gives such a table no name."""
        return "," in self.kind.ordering or self.kind.payload is PayloadKind.MYSQL_DEBEZIUM

    # --- rows --------------------------------------------------------------------------------

    def rows(self, keys: Sequence[int], *, deletes: bool = True) -> pa.Table:
        """Rows of keys by their numbers, in any order."""
        found = [self._row(key, deletes=deletes) for key in keys]
        self.drawn.shuffle(found)
        return pa.Table.from_pylist(found, self.schema)

    def _row(self, key: int, *, deletes: bool) -> Row:
        drawn = self.drawn

        def maybe(value: Any) -> Any:
            return None if drawn.random() < 0.2 else value

        order = drawn.randrange(1, 9) + len(self.taken)
        is_deleted = deletes and drawn.random() < 0.15
        row = {
            "id": f"k{key:03}",
            "ts": order,
            "city": CITIES[key % 3],
            "name": maybe(drawn.choice(WORDS)),
            "fare": maybe(drawn.randrange(400) / 4 + 100 * len(self.taken)),
            "number": drawn.randrange(100),
            "price": maybe(Decimal(drawn.randrange(-99999, 99999)).scaleb(-2)),
            "at": maybe(START + timedelta(hours=drawn.randrange(9999), microseconds=key)),
            "day": maybe(START.date() + timedelta(drawn.randrange(99))),
            "paid": maybe(drawn.random() < 0.5),
            "bytes": maybe(drawn.randbytes(3)),
            "tags": maybe(drawn.sample(WORDS, drawn.randrange(3))),
            "place": maybe({"level": maybe(drawn.randrange(9)), "word": drawn.choice(WORDS)}),
            "Op": "D" if is_deleted else "U",
            "_event_lsn": order,
            "_event_bin_file": f"bin.{order // 4:03}",
            "_event_pos": order,
            "_event_seq": f"{order // 4:03}.{order}",
            "_change_operation_type": "d" if is_deleted else "u",
            "_hoodie_is_deleted": is_deleted,
            "note": maybe(drawn.choice(WORDS)),
        }
        return {name: row[name] for name in self.schema.names}

    def some(self, count: int) -> list[int]:
        """Keys that were inserted, some of them deleted since."""
        return self.drawn.sample(range(self._keys), min(count, self._keys))

    def present(self, count: int) -> list[int]:
        """Keys of rows that the table has: Hudi-Spark cannot read updates of no row."""
        return self.drawn.sample(sorted(self.keys), min(count, len(self.keys)))

    def new(self, count: int) -> list[int]:
        """Keys that are new."""
        self._keys += count
        return list(range(self._keys - count, self._keys))

    # --- writes ------------------------------------------------------------------------------

    def save(self, operation: str, rows: pa.Table, more: Options | None = None) -> None:
        """Write rows by the data source."""
        named = {"hoodie.datasource.write.operation": operation}
        self.engine.save(rows, self.path, {**self.kind.options, **named, **(more or {})})

    def insert(self, count: int, operation: str, more: Options | None = None) -> None:
        """Insert rows of new keys."""
        self.save(operation, self.rows(self.new(count), deletes=False), more)

    def _insert(self, more: Options | None = None) -> None:
        is_bulk = self.drawn.random() < 0.5 and self.kind.index not in _BUCKETS
        self.insert(self.drawn.randrange(1, 20), "bulk_insert" if is_bulk else "insert", more)

    def _upsert(self, more: Options | None = None) -> None:
        keys = self.some(self.drawn.randrange(1, 15))
        if self.drawn.random() < 0.4:
            keys += self.new(self.drawn.randrange(1, 6))
        # several versions of a row in one batch, of which Hudi's record index may not take two
        is_once = self.has_several_orders and self.kind.index == "RECORD_INDEX"
        if self.drawn.random() < 0.3 and not is_once:
            keys += self.drawn.sample(keys, 1)
        self.save("upsert", self.rows(keys), more)

    def _delete(self, more: Options | None = None) -> None:
        self.save("delete", self.rows(self.some(self.drawn.randrange(1, 5))), more)

    # --- statements --------------------------------------------------------------------------

    def sql(self, text: str, more: Options | None = None) -> list[tuple[Any, ...]]:
        """Run a statement, where ``{t}`` is the table."""
        name = f"{self.name}_{len(self.schema)}"  # a name keeps the columns that it had
        create = f"create table if not exists {name} using hudi location 'file://{self.path}'"
        self.engine.sql(create)
        self.engine.sql(f"refresh table {name}")
        settings = {name: value for name, value in self.kind.options.items() if "name" not in name}
        with self.engine.configured({**settings, **(more or {})}):
            return self.engine.sql(text.format(t=name))

    def _update(self) -> None:
        word = self.drawn.choice(WORDS)
        self.update(word, 1 if self.drawn.random() < 0.7 else 0)

    def update(self, word: str, more: int) -> None:
        """Set the fares of the rows of a name, and raise their ordering values."""
        also = f", ts = ts + {more}" if more else ""
        self.sql(f"update {{t}} set fare = -1.5{also} where name = '{word}'")

    def _delete_where(self) -> None:
        self.delete_where(self.drawn.randrange(90))

    def delete_where(self, low: int) -> None:
        """Delete the rows of nine numbers."""
        self.sql(f"delete from {{t}} where number between {low} and {low + 8}")

    def _merge_into(self) -> None:
        drawn = self.drawn
        keys = self.present(drawn.randrange(1, 10))
        # with buckets Hudi-Spark takes new rows for updates as well
        inserts = drawn.random() < 0.3 and self.kind.index not in _BUCKETS
        columns = ["fare", "name", "price", "tags", "place", "paid", "bytes"]
        chosen = drawn.sample(columns, drawn.randrange(1, 4))
        if self.kind.payload is not None or self.kind.index == "GLOBAL_SIMPLE":
            chosen = self.schema.names  # all of them, or Hudi-Spark refuses the statement
        elif self.kind.ordering:
            chosen += self.kind.ordering.split(",")
        rows = self.rows(keys + (self.new(2) if inserts else []), deletes=False)
        self.merge_into(rows, chosen, " when not matched then insert *" if inserts else "")

    def merge_into(self, rows: pa.Table, columns: Sequence[str], more: str = "") -> None:
        """Update some columns of the rows with the keys of others."""
        file = self.engine.folder / f"merge-{self.number}-{len(self.taken)}.parquet"
        pq.write_table(rows, file)
        sets = ", ".join(f"{one} = s.{one}" for one in columns)
        on = " and t.city = s.city" if self.kind.partitioned else ""
        self.sql(
            f"merge into {{t}} t using (select * from parquet.`{file}`) s on t.id = s.id{on}"
            f" when matched then update set {sets}{more}"
        )

    # --- services ----------------------------------------------------------------------------

    def _compact_inline(self) -> None:
        self._upsert(_INLINE)

    def _leave_a_compaction(self) -> None:
        self._upsert(_SCHEDULED)

    def _compact(self) -> None:
        if self.drawn.random() < 0.7:
            self.sql("call run_compaction(op => 'schedule', table => '{t}')")
        self.sql("call run_compaction(op => 'run', table => '{t}')")

    def _cluster_inline(self) -> None:
        self._upsert(_CLUSTERING if self._is_clustered else None)

    def _clean_inline(self) -> None:
        self._upsert(_CLEAN)

    def _compact_logs(self) -> None:
        self._upsert(_LOG_COMPACTION)

    def _roll_back(self) -> None:
        drawn = self.drawn
        write: Callable[[Options], None]
        write = drawn.choice([self._upsert, self._delete, self._insert])
        write(_NO_METADATA_COMPACTION)
        timeline = self.path / ".hoodie" / "timeline"
        last = max(one.name for one in timeline.glob("*_*.deltacommit"))
        time = last.partition("_")[0]
        call = f"call rollback_to_instant(table => '{{t}}', instant_time => '{time}')"
        self.sql(call, _NO_METADATA_COMPACTION)

    @property
    def _is_clustered(self) -> bool:
        """Whether Hudi clusters the table: no buckets, but those of a hash ring in partitions."""
        index = self.kind.index
        return index not in _BUCKETS or (index == "CONSISTENT" and self.kind.partitioned)

    def _cluster(self) -> None:
        if self._is_clustered:
            self.sql("call run_clustering(table => '{t}')")
        else:
            self._upsert()

    def _clean(self) -> None:
        self.sql("call run_clean(table => '{t}', retain_commits => 1)")

    def _archive(self) -> None:
        self.sql(
            "call archive_commits(table => '{t}', min_commits => 2, max_commits => 3,"
            " retain_commits => 1, enable_metadata => true)"
        )

    def _add_column(self) -> None:
        if NOTE.name in self.schema.names:
            self._upsert()
        elif self.drawn.random() < 0.5 and not self.has_several_orders:
            self.sql(f"alter table {{t}} add columns ({NOTE.name} string)")
            self.schema = self.schema.append(NOTE)
        else:
            self.schema = self.schema.append(NOTE)
            self._upsert()


_STEPS: Final[Mapping[str, int]] = {
    "upsert": 8,
    "insert": 2,
    "delete": 3,
    "update": 2,
    "delete_where": 1,
    "merge_into": 5,
    "compact_inline": 2,
    "leave_a_compaction": 2,
    "compact": 2,
    "compact_logs": 3,
    "roll_back": 3,
    "cluster": 2,
    "clean": 2,
    "archive": 2,
    "add_column": 2,
}
"""Steps and how often they are drawn."""
_WITHOUT_NAME: Final = {
    "update": "upsert",
    "delete_where": "delete",
    "merge_into": "upsert",
    "compact": "compact_inline",
    "roll_back": "compact_inline",
    "cluster": "cluster_inline",
    "clean": "clean_inline",
    "archive": "leave_a_compaction",
}
"""What is done instead of a statement."""
