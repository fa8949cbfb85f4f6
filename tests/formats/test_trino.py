"""Trino's Thrift protocol, spoken by another codec: tables, splits, pages, predicates, errors."""

from __future__ import annotations

import datetime as dt
import json
import re
import signal
import socket
import struct
import subprocess
import sys
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hudi_conformance.hive_metastore import HiveMetastore

import hudi_core as hudi
from hudi_core.read.connector.handles import TableName
from hudi_core.read.connector.split_manager import SplitManager
from hudi_core.trino.server import ThriftServer
from hudi_core.trino.service import TrinoService
from hudi_core.trino.signing import TokenSigner
from tests.formats.trino_client import (
    ABOVE,
    BELOW,
    EXACTLY,
    PROTOCOL,
    all_splits,
    between,
    block,
    client_of,
    connected,
    domain,
    everything,
    no_token,
    rows_of_split,
    table_name,
)
from tests.hudi_tables import BUCKETS, COMMIT_TIME, LOGS_6, OWN, PARQUET_LOGS
from tests.hudi_tables import TRIPS as TRIPS_LOGS
from tests.tables import FORMATS

UTC = dt.UTC
DAY = dt.date(2026, 1, 2)
ROWS = pa.table(
    {
        "id": pa.array(range(40), pa.int64()),
        "City": [["Rome", "Oslo", None, "Kyōto"][n % 4] for n in range(40)],
        "small": pa.array([None if n == 3 else n for n in range(40)], pa.int32()),
        "fare": [None if n == 5 else n / 4 for n in range(39)] + [float("nan")],
        "paid": [None if n == 7 else n % 2 == 0 for n in range(40)],
        "day": [DAY + dt.timedelta(days=n) for n in range(40)],
        "at": pa.array(
            [dt.datetime(2026, 1, 1, 0, 0, n, 1500, UTC) for n in range(40)],
            pa.timestamp("us", "UTC"),
        ),
        "price": pa.array([Decimal(n) / 100 for n in range(40)], pa.decimal128(9, 2)),
        "raw": pa.array([None if n == 2 else bytes([n]) for n in range(40)], pa.binary()),
        "tags": [None if n == 1 else [str(n), None] for n in range(40)],
    }
)
SIGNER = TokenSigner([b"k" * 32], lifetime_s=3600, clock=lambda: 1_800_000_000.0)
"""The same for several servers; its clock does not move, so that equal calls have equal answers."""
PLAIN = ["id", "city", "small", "fare", "paid", "day", "at"]
EPOCH = dt.date(1970, 1, 1)


def expected() -> list[tuple[Any, ...]]:
    found = []
    for row in ROWS.drop_columns(["price", "raw", "tags"]).to_pylist():
        days = (row["day"] - EPOCH).days
        ms = int(row["at"].timestamp() * 1000)
        found.append((row["id"], row["City"], row["small"], row["fare"], row["paid"], days, ms))
    return found


@pytest.fixture(scope="module", params=FORMATS)
def path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of two partitions' worth of files and several commits."""
    place = str(tmp_path_factory.mktemp("trino") / "trips")
    table = hudi.Table.create(
        place, ROWS.schema, record_key="id", partition_by="City", format=request.param
    )
    table.bulk_insert(ROWS.slice(0, 20))
    table.bulk_insert(ROWS.slice(20))
    return place


@pytest.fixture(scope="module")
def service(path: str) -> TrinoService:
    return TrinoService(hudi.Connector(), {TableName("Lake", "Trips"): path}, signer=SIGNER)


@pytest.fixture(scope="module")
def client(service: TrinoService) -> Iterator[Any]:
    with client_of(service) as client:
        yield client


TRIPS = table_name("lake", "trips")


def service_of(path: Path, *rows: pa.Table) -> tuple[hudi.Table, TrinoService]:
    """A table without partitions, with a file for each of these rows, and a service of it."""
    table = hudi.Table.create(path, rows[0].schema, record_key="id")
    for one in rows:
        table.bulk_insert(one)
    return table, TrinoService(hudi.Connector(), {TableName("lake", "trips"): table.path})


def read(client: Any, columns: list[str], domain: Any = None, **more: Any) -> list[Any]:
    splits = all_splits(client, TRIPS, domain)
    return sorted(
        (row for split in splits for row in rows_of_split(client, split, columns, **more)), key=repr
    )


def same(found: list[Any], wanted: list[Any]) -> bool:
    """Whether rows are equal, where NaN is what it is."""
    return sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_tables_and_columns(client: Any) -> None:
    assert client.trinoListSchemaNames() == ["lake"]
    for schema in (None, "lake"):
        names = client.trinoListTables(PROTOCOL.SchemaName(schemaName=schema))
        assert names == [TRIPS]
    assert client.trinoListTables(PROTOCOL.SchemaName(schemaName="other")) == []
    found = client.trinoGetTableMetadata(TRIPS).tableMetadata
    assert found.schemaTableName == TRIPS
    shown = {one.name: one.type for one in found.columns if not one.hidden}
    assert {name: kind for name, kind in shown.items() if not name.startswith("hoodie")} == {
        "id": "bigint",
        "city": "varchar",
        "small": "integer",
        "fare": "double",
        "paid": "boolean",
        "day": "date",
        "at": "timestamp",
        "price": "varchar",
        "raw": "varchar",
        "tags": "json",
    }
    assert "path" in {one.name for one in found.columns if one.hidden}
    # Trino fails on any other name
    assert all(re.fullmatch("[a-z][a-z0-9_]*", one.name) for one in found.columns)
    assert client.trinoGetTableMetadata(table_name("lake", "none")).tableMetadata is None


def test_all_rows(client: Any) -> None:
    assert same(read(client, PLAIN), expected())


def test_what_has_no_type_is_text(client: Any) -> None:
    found = {row[0]: row[1:] for row in read(client, ["id", "price", "raw", "tags"])}
    assert found[1] == ("0.01", "AQ==", None)
    assert found[2][1] is None
    assert json.loads(found[3][2]) == ["3", None]


def test_no_column_counts_rows(client: Any) -> None:
    assert read(client, []) == [()] * 40


def test_hidden_columns(client: Any, path: str) -> None:
    found = read(client, ["path", "partition"])
    assert {row[1] for row in found} >= {"City=Rome", "City=Oslo"}
    assert all(row[0].startswith(path) for row in found)


@pytest.mark.parametrize("max_bytes", [1, 100, 1000])
def test_pages_are_no_larger_than_asked_for(client: Any, max_bytes: int) -> None:
    """Each call is made twice, as one whose answer was lost."""
    assert same(read(client, PLAIN, max_bytes=max_bytes, twice=True), expected())
    [split, *_] = all_splits(client, TRIPS)
    page = client.trinoGetRows(split.splitId, PLAIN, max_bytes, no_token())
    assert page.rowCount == 1 or max_bytes > 1


def test_splits_come_in_batches_that_can_be_asked_for_again(client: Any) -> None:
    whole = all_splits(client, TRIPS)
    assert len(whole) == 8
    for most in (1, 3, 8):
        assert all_splits(client, TRIPS, most=most, twice=True) == whole


def test_another_server_goes_on(client: Any, path: str) -> None:
    """A scan's second batch, and a split's second page, come from a server that knows nothing."""
    first = client.trinoGetSplits(TRIPS, PROTOCOL.NullableColumnSet(), everything(), 3, no_token())
    page = client.trinoGetRows(first.splits[0].splitId, ["id"], 20, no_token())
    other = TrinoService(hudi.Connector(), {TableName("lake", "trips"): path}, signer=SIGNER)
    with client_of(other) as fresh:
        for one, other_one in zip(
            _rest(client, first.nextToken), _rest(fresh, first.nextToken), strict=True
        ):
            assert one == other_one
        arguments = first.splits[0].splitId, ["id"], 1000
        token = PROTOCOL.NullableToken(token=page.nextToken)
        assert fresh.trinoGetRows(*arguments, token) == client.trinoGetRows(*arguments, token)


def _rest(client: Any, token: Any) -> list[Any]:
    given = TRIPS, PROTOCOL.NullableColumnSet(), everything(), 100
    found: list[Any] = client.trinoGetSplits(*given, PROTOCOL.NullableToken(token=token)).splits
    return found


def test_a_scan_reads_one_state(tmp_path: Path) -> None:
    """Splits of a scan that began before a write are of the table before it."""
    table, service = service_of(tmp_path / "t", ROWS.slice(0, 4), ROWS.slice(4, 4))
    with client_of(service) as client:
        given = TRIPS, PROTOCOL.NullableColumnSet(), everything(), 1
        first = client.trinoGetSplits(*given, no_token())
        table.upsert(ROWS.slice(0, 8))
        table.bulk_insert(ROWS.slice(8, 4))
        token = PROTOCOL.NullableToken(token=first.nextToken)
        client.trinoGetSplits(*given, token)
        second = client.trinoGetSplits(*given, token)  # again, so that it is planned again
        found = [
            row
            for split in (*first.splits, *second.splits)
            for row in rows_of_split(client, split, ["id"])
        ]
    assert second.nextToken is None
    assert sorted(found) == [(n,) for n in range(8)]


def ids(client: Any, wanted: Any) -> list[int]:
    return sorted(row[0] for row in read(client, ["id"], wanted))


MS = int(dt.datetime(2026, 1, 1, 0, 0, 10, tzinfo=UTC).timestamp() * 1000)
CASES = {
    "bigint": (domain("id", between("bigint", 3, 5)), [3, 4, 5]),
    "open": (domain("id", between("bigint", 3, 5, (ABOVE, BELOW))), [4]),
    "low": (domain("id", between("bigint", 38)), [38, 39]),
    "high": (domain("id", between("bigint", None, 1)), [0, 1]),
    "several": (domain("id", between("bigint", 1, 1), between("bigint", 7, 8)), [1, 7, 8]),
    "integer": (domain("small", between("integer", 2, 4), nulls=True), [2, 3, 4]),
    "double": (domain("fare", between("double", 1.0, 1.5)), [4, 6]),
    "null": (domain("fare", nulls=True), [5]),
    "boolean": (domain("paid", between("boolean", True, True), nulls=True), [7, *range(0, 39, 2)]),
    "date": (domain("day", between("date", (DAY - EPOCH).days, (DAY - EPOCH).days + 1)), [0, 1]),
    "partition": (domain("city", between("varchar", "Kyōto", "Kyōto")), list(range(3, 40, 4))),
    "none": (PROTOCOL.TupleDomain(), []),
    # Trino sees 10.001 where 10.0015 is stored
    "exact time": (domain("at", between("timestamp", MS + 1, MS + 1)), [10]),
    "after": (domain("at", between("timestamp", MS + 1, MS + 999, (ABOVE, EXACTLY))), []),
    "before": (domain("at", between("timestamp", MS, MS + 1, (EXACTLY, BELOW))), []),
}


@pytest.mark.parametrize("case", CASES)
def test_constraints(client: Any, case: str) -> None:
    wanted, found = CASES[case]
    assert ids(client, wanted) == sorted(found)


def test_constraints_that_are_left_to_trino(client: Any) -> None:
    """NaN is not 5; decimals are texts, which Trino compares as such."""
    other = domain(
        "fare",
        between("double", None, 5.0, (ABOVE, BELOW)),
        between("double", 5.0, None, (ABOVE, ABOVE)),
    )
    assert 39 in ids(client, other)
    assert len(ids(client, domain("price", between("varchar", "9", "9")))) == 40
    values = PROTOCOL.Equatable(inclusive=True, values=[block("bigint", 4), block("bigint", 9)])
    one = PROTOCOL.Domain(valueSet=PROTOCOL.ValueSet(equatableValueSet=values), nullAllowed=False)
    assert ids(client, PROTOCOL.TupleDomain(domains={"id": one})) == [4, 9]
    values.inclusive = False
    assert len(ids(client, PROTOCOL.TupleDomain(domains={"id": one}))) == 38


def test_a_partition_that_is_not_wanted_has_no_split(client: Any) -> None:
    found = all_splits(client, TRIPS, domain("city", between("varchar", "Rome", "Rome")))
    # behind the signature and the table's name
    bodies = [json.loads(one.splitId.id.rpartition(b"\n")[2]) for one in found]
    partitions = {one["partition"] for one in bodies}
    assert "City=Rome" in partitions
    assert partitions.isdisjoint({"City=Oslo", "City=Kyōto"})


def test_errors_name_their_cause(client: Any) -> None:
    with pytest.raises(PROTOCOL.ServiceError, match="not signed by this service") as refused:
        client.trinoGetRows(PROTOCOL.Identifier(id=b"{}"), [], 10, no_token())
    assert refused.value.retryable is False
    with pytest.raises(PROTOCOL.ServiceError, match="is not known"):
        all_splits(client, table_name("lake", "none"))
    token = PROTOCOL.NullableToken(token=PROTOCOL.Identifier(id=b"[-1,null]"))
    with pytest.raises(PROTOCOL.ServiceError, match="not signed by this service"):
        client.trinoGetSplits(TRIPS, PROTOCOL.NullableColumnSet(), everything(), 1, token)
    with pytest.raises(PROTOCOL.ServiceError, match="no keys"):
        client.trinoGetIndexSplits(TRIPS, [], [], None, everything(), 1, no_token())
    assert client.trinoListSchemaNames() == ["lake"]  # the connection is as good as before


def test_names_that_trino_does_not_take(tmp_path: Path) -> None:
    names = ["id", "Size", "_2nd", "__x", "path"]
    rows = pa.table({name: ["x"] for name in names})
    table, service = service_of(tmp_path / "t", rows)
    with client_of(service) as client:
        columns = client.trinoGetTableMetadata(TRIPS).tableMetadata.columns
        shown = [one.name for one in columns if not one.hidden]
        assert shown[5:] == ["id", "size", "column_2nd", "x", "path"]
        assert read(client, shown[5:]) == [("x",) * 5]
        table.alter(add_columns={"_x": pa.string()})
        with pytest.raises(PROTOCOL.ServiceError, match="are both x to Trino"):
            client.trinoGetTableMetadata(TRIPS)


def test_a_table_that_is_lost_may_be_asked_for_again(tmp_path: Path) -> None:
    _, service = service_of(tmp_path / "t", ROWS.slice(0, 4))
    with client_of(service) as client:
        [split] = all_splits(client, TRIPS)
        for file in tmp_path.rglob("*.parquet"):
            file.unlink()
        with pytest.raises(PROTOCOL.ServiceError) as lost:
            rows_of_split(client, split, ["id"])
    assert lost.value.retryable is True


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x00\x00\x04abcd",
        b"\xff\xff\xff\xff",
        b"\x7f\xff\xff\xff",
        struct.pack(">i", 12) + b"\x80\x01\x00\x01\x7f\xff\xff\xff" + b"abcd",
    ],
)
def test_what_is_no_call_ends_its_connection_alone(service: TrinoService, sent: bytes) -> None:
    with ThriftServer(service).running() as address, connected(address) as client:
        with socket.create_connection(address, timeout=20) as broken:
            broken.sendall(sent)
            assert broken.recv(1) == b""
        assert client.trinoListSchemaNames() == ["lake"]


def test_the_command(path: str) -> None:
    command = [sys.executable, "-c", "from hudi_core.cli import main; main()", "serve-trino"]
    command += ["--port", "0", "--table", f"lake.trips={path}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        found = re.search(r"at ([\d.]+):(\d+)\.", running.stdout.readline())
        assert found is not None
        with connected((found[1], int(found[2]))) as client:
            assert len(read(client, ["id"])) == 40
        running.send_signal(signal.SIGTERM)
        assert running.wait(20) == 0


def test_conditions_on_floats_lose_no_row(tmp_path: Path) -> None:
    """Trino compares doubles, where the column has floats; 0.0 is -0.0."""
    rows = pa.table(
        {
            "id": pa.array(range(5), pa.int64()),
            "f": pa.array([0.1, 0.7, 0.5, float("nan"), -0.0], pa.float32()),
            "d": pa.array([0.0, 1.0, 2.0, 3.0, -0.0], pa.float64()),
        }
    )
    _, service = service_of(tmp_path / "t", rows)
    exact = rows["f"].to_pylist()
    with client_of(service) as client:
        above = set(ids(client, domain("f", between("double", 0.1, None, (ABOVE, BELOW)))))
        assert above >= {n for n, value in enumerate(exact) if value > 0.1}
        below = set(ids(client, domain("f", between("double", None, 0.7, (ABOVE, BELOW)))))
        assert below >= {n for n, value in enumerate(exact) if value < 0.7}
        singles = [between("double", value, value) for value in (0.0, 1.0)]
        assert ids(client, domain("d", *singles)) == [0, 1, 4]


def test_conditions_on_hidden_columns_are_left_to_trino(client: Any) -> None:
    assert len(ids(client, domain("path", between("varchar", "a", "a")))) == 40
    assert len(ids(client, domain("file_size", between("bigint", 1, 1)))) == 40


def test_a_write_that_comes_into_a_state_ends_a_scan_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not know the scan would count other splits than the first one did."""
    table, _ = service_of(tmp_path / "t", *(ROWS.slice(4 * n, 4) for n in range(3)))
    place = {TableName("lake", "trips"): table.path}
    given = TRIPS, PROTOCOL.NullableColumnSet(), everything(), 1
    with client_of(TrinoService(hudi.Connector(), place, signer=SIGNER)) as client:
        first = client.trinoGetSplits(*given, no_token())
    other = TrinoService(hudi.Connector(), place, signer=SIGNER)
    # as of a write that was requested before the state, and is complete now
    plain = SplitManager.state_at
    monkeypatch.setattr(
        SplitManager,
        "state_at",
        lambda *given: plain(*given)._replace(finished="99991231235959999"),
    )
    token = PROTOCOL.NullableToken(token=first.nextToken)
    with (
        client_of(other) as fresh,
        pytest.raises(PROTOCOL.ServiceError, match="Run the query again") as refused,
    ):
        fresh.trinoGetSplits(*given, token)
    assert refused.value.retryable is False


# --- tables of Apache Hudi with logs
@pytest.mark.parametrize("name", [TRIPS_LOGS, LOGS_6, COMMIT_TIME, PARQUET_LOGS, BUCKETS])
def test_slices_with_logs(name: str, tmp_path: Path) -> None:
    """Each is one split, whose pages have merged rows, in the same order every time."""
    path = OWN.unpack(name, tmp_path / "t")
    table = hudi.Table.open(path)
    key = table.config.record_key_fields[0]
    wanted = [(row[key],) for row in table.to_arrow([key]).to_pylist()]
    service = TrinoService(hudi.Connector(), {TableName("lake", "trips"): str(path)})
    with client_of(service) as client:
        assert len(all_splits(client, TRIPS)) == len(table.file_slices())
        for most in (1, 1 << 20):
            assert same(read(client, [key], max_bytes=most, twice=True), wanted)
        assert read(client, []) == [()] * len(wanted)
        logs = {log.status.path for one in table.file_slices() for log in one.log_files}
        paths = {row[0].removeprefix(f"{path}/") for row in read(client, ["path"])}
        firsts = {one.files[0].path for one in table.file_slices()}
        assert logs
        assert paths <= firsts


def test_a_value_that_only_a_log_has_is_found(tmp_path: Path) -> None:
    path = OWN.unpack(TRIPS_LOGS, tmp_path / "t")
    service = TrinoService(hudi.Connector(), {TableName("lake", "trips"): str(path)})
    with client_of(service) as client:
        fare = domain("fare", between("double", 1.5, 1.5))
        assert read(client, ["city", "fare"], fare) == [("rome", 1.5)]


def test_names_of_a_table_with_logs(metastore: HiveMetastore, tmp_path: Path) -> None:
    """Its entries in a metastore say whether logs count."""
    path, lake = OWN.unpack(TRIPS_LOGS, tmp_path / "t"), f"t{uuid.uuid4().hex}"
    uris, hive = "hoodie.datasource.hive_sync.metastore.uris", "hoodie.datasource.hive_sync."
    options = {uris: metastore.uri, f"{hive}database": lake, f"{hive}table": "t"}
    hudi.Table.open(path).sync(options=options)
    service = TrinoService(hudi.Connector({"hive.metastore.uri": metastore.uri}), {})
    with client_of(service) as client:
        for suffix, kind in (("_ro", "read_optimized"), ("_rt", "snapshot"), ("", "snapshot")):
            query = {"hoodie.datasource.query.type": kind}
            seen = hudi.read(None, path, query).select(["uuid", "fare"]).to_pylist()
            splits = all_splits(client, table_name(lake, f"t{suffix}"))
            found = [
                row for split in splits for row in rows_of_split(client, split, ["uuid", "fare"])
            ]
            assert same(found, [tuple(row.values()) for row in seen])
