"""A client of Trino's Thrift protocol, by thriftpy2: a codec that shares no code with ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import thriftpy2
import thriftpy2.protocol
import thriftpy2.transport
from thriftpy2.rpc import client_context

from hudi_core.trino.server import ThriftServer
from hudi_core.trino.service import TrinoService

PROTOCOL: Any = thriftpy2.load(
    str(Path(__file__).with_name("trino_protocol.thrift")), module_name="trino_protocol_thrift"
)
_BINARY: Any = thriftpy2.protocol.TCyBinaryProtocolFactory
_FRAMED: Any = thriftpy2.transport.TCyFramedTransportFactory
BELOW, EXACTLY, ABOVE = 1, 2, 3
"""Where the end of a range is, beside its value."""


@contextmanager
def connected(address: tuple[str, int]) -> Iterator[Any]:
    """A connection to a server."""
    host, port = address
    with client_context(
        PROTOCOL.Tables,
        host,
        port,
        proto_factory=_BINARY(),
        trans_factory=_FRAMED(),
        socket_timeout=60_000,
    ) as client:
        yield client


@contextmanager
def client_of(service: TrinoService) -> Iterator[Any]:
    """A client of a server of its own."""
    with ThriftServer(service).running() as address, connected(address) as client:
        yield client


def table_name(schema: str, table: str) -> Any:
    return PROTOCOL.TableName(schemaName=schema, tableName=table)


def no_token() -> Any:
    return PROTOCOL.NullableToken()


def token_of(found: Any) -> Any:
    return PROTOCOL.NullableToken(token=found)


def everything() -> Any:
    return PROTOCOL.TupleDomain(domains={})


def all_splits(
    client: Any, name: Any, domain: Any | None = None, most: int = 100, *, twice: bool = False
) -> list[Any]:
    """All splits of a scan.

    ``twice``: whether each call is repeated, as a client does that got no answer.
    """
    splits: list[Any] = []
    token = no_token()
    while True:
        arguments = name, PROTOCOL.NullableColumnSet(), domain or everything(), most, token
        batch = client.trinoGetSplits(*arguments)
        if twice:
            assert client.trinoGetSplits(*arguments) == batch
        assert len(batch.splits) <= most
        splits += batch.splits
        if batch.nextToken is None:
            return splits
        token = token_of(batch.nextToken)


def rows_of_split(
    client: Any,
    split: Any,
    columns: Sequence[str],
    max_bytes: int = 1 << 24,
    *,
    twice: bool = False,
) -> list[tuple[Any, ...]]:
    """The rows of a split."""
    rows: list[tuple[Any, ...]] = []
    token = no_token()
    while True:
        arguments = split.splitId, list(columns), max_bytes, token
        page = client.trinoGetRows(*arguments)
        if twice:
            assert repr(client.trinoGetRows(*arguments)) == repr(page)  # NaN is not itself
        values = [column_values(block, page.rowCount) for block in page.columnBlocks]
        rows += zip(*values, strict=True) if values else [()] * page.rowCount
        if page.nextToken is None:
            return rows
        token = token_of(page.nextToken)


def column_values(block: Any, count: int) -> list[Any]:
    """The values of a block."""
    [(kind, data)] = [(name, one) for name, one in vars(block).items() if one is not None]
    nulls = data.nulls or [False] * count
    assert len(nulls) == count
    if kind in ("varcharData", "jsonData"):
        found, offset = [], 0
        for size in data.sizes:
            found.append(data.bytes[offset : offset + size].decode())
            offset += size
        assert offset == len(data.bytes)
        values: list[Any] = found
    else:
        [values] = [one for name, one in vars(data).items() if name != "nulls"]
    assert len(values) == count
    return [None if null else value for null, value in zip(nulls, values, strict=True)]


def block(kind: str, value: Any) -> Any:
    """One value."""
    if kind == "varchar":
        data = value.encode()
        return PROTOCOL.Block(varcharData=PROTOCOL.Texts(sizes=[len(data)], bytes=data))
    made = {
        "integer": lambda: PROTOCOL.Block(integerData=PROTOCOL.Integers(ints=[value])),
        "bigint": lambda: PROTOCOL.Block(bigintData=PROTOCOL.Longs(longs=[value])),
        "double": lambda: PROTOCOL.Block(doubleData=PROTOCOL.Doubles(doubles=[value])),
        "boolean": lambda: PROTOCOL.Block(booleanData=PROTOCOL.Booleans(booleans=[value])),
        "date": lambda: PROTOCOL.Block(dateData=PROTOCOL.Dates(dates=[value])),
        "timestamp": lambda: PROTOCOL.Block(timestampData=PROTOCOL.Timestamps(timestamps=[value])),
    }
    return made[kind]()


def between(
    kind: str, low: Any = None, high: Any = None, bounds: tuple[int, int] = (EXACTLY, EXACTLY)
) -> Any:
    """A range; without an end on the side that is ``None``."""
    ends = [
        PROTOCOL.Marker(bound=ABOVE if low is None else bounds[0]),
        PROTOCOL.Marker(bound=BELOW if high is None else bounds[1]),
    ]
    for end, value in zip(ends, (low, high), strict=True):
        end.value = None if value is None else block(kind, value)
    return PROTOCOL.Range(low=ends[0], high=ends[1])


def domain(column: str, *ranges: Any, nulls: bool = False) -> Any:
    """What a column may be: a value in one of the ranges, or null."""
    values = PROTOCOL.ValueSet(rangeValueSet=PROTOCOL.Ranges(ranges=list(ranges)))
    one = PROTOCOL.Domain(valueSet=values, nullAllowed=nulls)
    return PROTOCOL.TupleDomain(domains={column: one})
