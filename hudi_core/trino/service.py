"""The answers of the service: schemas, tables, splits and rows."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from threading import Lock
from typing import Final, Generic, NamedTuple, TypeVar

import pyarrow as pa

from hudi_core.config.trino import TrinoConfig
from hudi_core.doors.connector import Connector
from hudi_core.errors import (
    InvalidInstantTimeError,
    MetastoreEntryError,
    OutdatedScanError,
    RefusedCallError,
    SchemaError,
    TimelineError,
)
from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.read.connector.handles import ColumnHandle, TableHandle, TableName
from hudi_core.read.connector.metadata import HIDDEN_COLUMNS
from hudi_core.read.connector.predicate import TupleDomain
from hudi_core.read.connector.split_manager import Query
from hudi_core.read.connector.splits import Split
from hudi_core.trino.blocks import page
from hudi_core.trino.names import names_of_columns
from hudi_core.trino.signing import SignedKind, TokenSigner

_READERS: Final = 16
"""Open readers of splits, which hold what Arrow has read ahead: tens of megabytes each."""
_SPLITS_BYTES: Final = 4 << 20
"""About the bytes of a batch of splits; each has the table's columns, and Trino's frames end."""
_HEAD_BYTES: Final = 64
"""Of a frame, before and after the page."""
_PLACE_S: Final = 60
"""Seconds for which the place of a metastore's table is remembered: each page asks for it."""


class SplitPage(NamedTuple):
    """Some splits of a scan.

    A split is a signed token: its table by name, and its JSON without the table's place. ``token``
    is ``None`` after the last.
    """

    splits: Sequence[bytes]
    token: bytes | None


class TrinoService:
    """What Trino asks a server of its Thrift connector.

    Threads may share it.
    """

    def __init__(
        self,
        connector: Connector,
        tables: Mapping[TableName, str],
        config: TrinoConfig | None = None,
        signer: TokenSigner | None = None,
    ) -> None:
        self._connector = connector
        self.config = TrinoConfig() if config is None else config
        self._signer = TokenSigner.of(self.config) if signer is None else signer
        self._paths = {TableName(*map(str.lower, name)): path for name, path in tables.items()}
        self._places: dict[TableName, tuple[float, str]] = {}
        self._splits = Continued[Split]()
        self._rows = Continued[pa.RecordBatch](_READERS)

    def schemas(self) -> Sequence[str]:
        """Names of the schemas."""
        named = {name.schema for name in self._paths}
        if self._connector.config.metastore_uris:
            named |= set(self._connector.metadata.list_schemas())
        return sorted(named)

    def tables(self, schema: str | None) -> Sequence[TableName]:
        """Names of the tables of one schema, or of all."""
        named = {name for name in self._paths if schema in (None, name.schema)}
        if self._connector.config.metastore_uris:
            named |= {*self._connector.metadata.list_tables(schema)}
        return sorted(named)

    def columns(self, name: TableName) -> Mapping[str, ColumnHandle] | None:
        """The columns of a table by Trino's names; ``None`` without a table."""
        handle = self._find(name)
        if handle is None:
            return None
        found = {one.name: one for one in self._connector.columns(handle)}
        own = [one for one in found if one not in HIDDEN_COLUMNS]
        named = names_of_columns(own)
        return {name: found[stored] for name, stored in named.items() if stored in found}

    def schema(self, name: TableName) -> pa.Schema:
        """The columns of a table as Arrow has them, without hidden ones."""
        found = (self.columns(name) or {}).values()
        return pa.schema([(one.name, one.type) for one in found if one.name not in HIDDEN_COLUMNS])

    def splits(
        self, name: TableName, wanted: TupleDomain, most: int, token: bytes | None
    ) -> SplitPage:
        """The next splits of a scan."""
        handle, manager = self._handle(name), self._connector.split_manager
        scan = json.dumps([*name, wanted.to_document()], sort_keys=True).encode()
        position = (
            Position(0, *manager.latest_state(handle))
            if token is None
            else Position.decode(self._signer.verified(SignedKind.MORE_SPLITS, token, scan))
        )
        query = Query(as_of=position.state)

        def begin(count: int) -> Iterator[Split]:
            if count:
                self._require_same_state(handle, position)
            return islice(manager.in_order(handle, wanted, query), count, None)

        iterator = self._splits.at(scan, position, begin)
        found: list[bytes] = []
        size = 0
        while len(found) < most and size < _SPLITS_BYTES:
            one = next(iterator, None)
            if one is None:
                return SplitPage(found, None)
            found.append(self._signer.sign(SignedKind.SPLIT, _split_body(name, one)))
            size += len(found[-1])
        following = next(iterator, None)
        if following is None:
            return SplitPage(found, None)
        position = replace(position, count=position.count + len(found))
        self._splits.keep(scan, position, chain([following], iterator))
        return SplitPage(found, self._signer.sign(SignedKind.MORE_SPLITS, position.encode(), scan))

    def rows(
        self, split: bytes, columns: Sequence[str], max_bytes: int, token: bytes | None
    ) -> bytes:
        """A page of a split's rows.

        ``max_bytes`` bounds the page, except for one of a single row. ``columns`` are Trino's
        names. A split of a table that is not served (any more) is refused.
        """
        names, read = self._names(columns), split + json.dumps(columns).encode()
        max_bytes = max(1, min(max_bytes, self.config.max_page_size) - _HEAD_BYTES)
        body = self._signer.verified(SignedKind.SPLIT, split)
        position = (
            Position()
            if token is None
            else Position.decode(self._signer.verified(SignedKind.MORE_ROWS, token, read))
        )

        def begin(count: int) -> Iterator[pa.RecordBatch]:
            return _behind(count, self._batches(body, names))

        iterator = self._rows.at(read, position, begin)
        batch = _filled(iterator, max_bytes)
        if batch is None:
            return page([pa.nulls(0, kind) for kind in self._types(body, names)], 0, None)
        count = _fitting(batch, max_bytes)
        while True:
            rest = batch.slice(count)
            following = rest if rest.num_rows else next(iterator, None)
            after = Position(position.count + count)
            more = (
                None
                if following is None
                else self._signer.sign(SignedKind.MORE_ROWS, after.encode(), read)
            )
            found = page(batch.slice(0, count).columns, count, more)
            if len(found) <= max_bytes or count == 1:
                break
            if following is not None and not rest.num_rows:
                iterator = chain([following], iterator)
            count = max(1, count // 2)
        if following is not None:
            self._rows.keep(read, after, chain([following], iterator))
        return found

    def _require_same_state(self, handle: TableHandle, position: Position) -> None:
        """Refuse to plan again after an earlier write or a move."""
        now = self._connector.split_manager.state_at(handle, position.state)
        if now.mark != position.mark:
            raise OutdatedScanError(handle.base_path)
        if now.finished != position.finished:
            raise TimelineError(
                f"The table at {handle.base_path} has a write of {now.finished} that was requested "
                "before the scan's own state, and this server does not know the scan",
                "Run the query again.",
            )

    def _names(self, columns: Sequence[str]) -> tuple[str, ...]:
        most = self.config.max_columns
        if len(columns) > most:
            raise RefusedCallError(
                "A call for rows",
                f"it names {len(columns)} columns",
                f"Name {most} at most, or set {TrinoConfig.max_columns.key}.",
            )
        if len(set(columns)) < len(columns):
            # each of them would be sent, so that a short call makes a page of any size
            raise RefusedCallError(
                "A call for rows", "it names a column twice", "Name each column once."
            )
        return tuple(columns)

    def _batches(self, body: bytes, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        split = self._split(body)
        batches = self._connector.read(split, _stored(split, names))
        return (one for one in batches if one.num_rows)

    def _types(self, body: bytes, names: Sequence[str]) -> Iterator[pa.DataType]:
        split = self._split(body)
        for name in _stored(split, names):
            hidden = HIDDEN_COLUMNS.get(name)
            yield split.schema.field(name).type if hidden is None else hidden.field.type

    def _split(self, body: bytes) -> Split:
        """The split of a verified body, with its table's place here."""
        name, _, text = body.decode().partition("\n")
        return replace(Split.from_json(text), table=self._place(TableName(*json.loads(name))))

    def _place(self, name: TableName) -> str:
        until, place = self._places.get(name, (0.0, ""))
        if until < time.monotonic():
            place = self._handle(name).base_path
            until = float("inf") if name in self._paths else time.monotonic() + _PLACE_S
            self._places[name] = until, place
        return place

    def _find(self, name: TableName) -> TableHandle | None:
        path = self._paths.get(name)
        if path is not None:
            return self._connector.table(path)
        if not self._connector.config.metastore_uris:
            return None
        return self._connector.metadata.table(*name)

    def _handle(self, name: TableName) -> TableHandle:
        found = self._find(name)
        if found is None:
            raise MetastoreEntryError(str(name), "is not known", "Look at SHOW TABLES.")
        return found


def _split_body(name: TableName, split: Split) -> bytes:
    return f"{json.dumps(name)}\n{replace(split, table='').to_json()}".encode()


def _stored(split: Split, names: Sequence[str]) -> list[str]:
    """The columns that Trino's names mean."""
    stored = names_of_columns(split.schema.names)
    return [stored.get(one, one) for one in names]


def _behind(count: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The batches behind so many rows."""
    for batch in batches:
        if count < batch.num_rows:
            yield batch.slice(count)
        count = max(0, count - batch.num_rows)


def _filled(batches: Iterator[pa.RecordBatch], max_bytes: int) -> pa.RecordBatch | None:
    """The next batches as one, of about so many bytes or more."""
    found: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        found.append(batch)
        size += _size(batch)
        if size >= max_bytes:
            break
    if len(found) < 2:
        return found[0] if found else None
    return pa.concat_batches(found)


def _fitting(batch: pa.RecordBatch, max_bytes: int) -> int:
    """How many rows of a batch are about so many bytes."""
    rows: int = batch.num_rows
    return min(rows, max(1, rows * max_bytes // max(1, _size(batch))))


def _size(batch: pa.RecordBatch) -> int:
    """About the bytes of a page of a batch."""
    size: int = batch.nbytes + batch.num_rows * (batch.num_columns + 1)
    return size


# --- splits and rows by their positions -----------------------------------------------------------


T = TypeVar("T")
_KEPT: Final = 256
_KEPT_S: Final = 120


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a scan of one state, or in a split.

    ``count`` splits or rows come before it. ``state`` is a requested time, ``None`` for a table
    without one and within a split, which has its own. ``finished`` is when the last write up to it
    was complete, ``mark`` what the properties said of the files when the scan began.
    """

    count: int = 0
    state: InstantTime | None = None
    finished: str | None = None
    mark: str | None = None

    def encode(self) -> bytes:
        """What the next call brings back."""
        return json.dumps([self.count, self.state, self.finished, self.mark]).encode()

    @classmethod
    def decode(cls, text: bytes) -> Position:
        """The position of a token."""
        try:
            count, state, finished, mark = json.loads(text)
            texts = all(isinstance(one, str | None) for one in (finished, mark))
            if type(count) is not int or count < 0 or not texts:
                raise ValueError(text)
            return cls(count, None if state is None else parse_instant_time(state), finished, mark)
        except (ValueError, TypeError, InvalidInstantTimeError) as error:
            raise SchemaError(f"{text[:80]!r} is no token", "Begin the scan again.") from error


class Continued(Generic[T]):
    """Iterators that later calls go on with.

    A call that goes on where the last one ended gets its iterator; one that is repeated, or was
    answered elsewhere before, gets a new one that is brought to the position. Without it a scan in
    100 batches is planned 100 times. What no call asks for is given up after a while.
    """

    def __init__(self, kept: int = _KEPT) -> None:
        self._kept = kept
        self._iterators: OrderedDict[Hashable, tuple[float, Iterator[T]]] = OrderedDict()
        self._guard = Lock()

    def at(
        self, what: Hashable, position: Position, begin: Callable[[int], Iterator[T]]
    ) -> Iterator[T]:
        """An iterator at a position, which no other call has."""
        with self._guard:
            _, found = self._iterators.pop((what, position), (0, None))
        return begin(position.count) if found is None else found

    def keep(self, what: Hashable, position: Position, iterator: Iterator[T]) -> None:
        """Keep an iterator for the call that goes on at a position."""
        now = time.monotonic()
        with self._guard:
            self._iterators[what, position] = now, iterator
            oldest = next(iter(self._iterators.values()))[0]
            while len(self._iterators) > self._kept or oldest < now - _KEPT_S:
                self._iterators.popitem(last=False)
                oldest = next(iter(self._iterators.values()))[0]
