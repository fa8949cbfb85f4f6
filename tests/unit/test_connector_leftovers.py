"""What a scan leaves of itself, whichever way it ends: no thread, no file, no connection.

The service ends a connection with its answer, so that one which is left is a call that goes on.
Where a store lets connections stay open, they belong to its client, which a process has once.
Those to a metastore are in ``test_connector_metastore``.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pyarrow as pa
import pytest

from hudi_core.doors.connector import Connector
from hudi_core.errors import StorageError
from hudi_core.model.files import PartitionPath
from hudi_core.read.connector.listing import SnapshotListing
from hudi_core.read.connector.loader import LoadState
from hudi_core.read.connector.split_source import SplitSource
from hudi_core.read.plan import PlannedSlice
from tests.moto_s3 import S3Service, serving
from tests.open_files import open_files
from tests.tables import new_table
from tests.unit.test_connector_loading import until

CITIES = [f"city-{number:02}" for number in range(40)]
ROWS = pa.table({"id": range(40), "city": CITIES})
# folders are listed, and most of the splits wait to be taken
OPTIONS = {"hoodie.metadata.enable": "false"}
SLOW = {"hudi.max-outstanding-splits": "2", "hudi.max-partition-batch-size": "10"}
Held = set[str]


@dataclass
class Gate:
    """Stands before an S3 service: holds listings of partitions back, or refuses them."""

    open: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    refuses: bool = False

    def before(self, application: Any) -> Any:
        def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
            if "/city-" in unquote_plus(environ["QUERY_STRING"]):
                self.asked.set()
                self.open.wait(30)
                if self.refuses:
                    start_response("403 Forbidden", [("Content-Type", "application/xml")])
                    return [b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>"]
            found: Iterable[bytes] = application(environ, start_response)
            return found

        return answer


@dataclass(frozen=True)
class Place:
    """A table, and how it is reached."""

    path: str
    given: dict[str, str]
    port: int | None = None

    def scan(self, **options: str) -> SplitSource:
        return Connector({**OPTIONS, **self.given, **options}).scan(self.path)

    def held(self) -> Held:
        """Threads, files and connections of this process, without those of the S3 service."""
        threads = {
            f"thread {one.ident} {one.name}"
            for one in threading.enumerate()
            if "process_request" not in one.name
        }
        of_service = _sockets_of(self.port)
        return threads | {one for one in open_files() if one.split()[-1] not in of_service}


def _sockets_of(port: int | None) -> set[str]:
    """The ends of connections that are the service's own, for it runs in this process."""
    lines = Path("/proc/self/net/tcp").read_text().splitlines()[1:]
    rows = [line.split() for line in lines]
    return {f"socket:[{row[9]}]" for row in rows if int(row[1].rpartition(":")[2], 16) == port}


@pytest.fixture(scope="module")
def gate() -> Gate:
    return Gate()


@pytest.fixture(scope="module")
def service(gate: Gate) -> Iterator[S3Service]:
    with serving(gate.before) as found:
        yield found


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory, service: S3Service) -> dict[str, Place]:
    """The same table on a disk and in an object store."""
    disk = Place(str(tmp_path_factory.mktemp("leftovers") / "t"), {})
    store = Place(service.new_root(), service.given, int(service.endpoint.rpartition(":")[2]))
    return {"disk": disk, "s3": store}


@pytest.fixture(scope="module")
def tables(places: dict[str, Place], gate: Gate) -> dict[str, Place]:
    gate.open.set()
    for place in places.values():
        new_table(place.path, ROWS, {**OPTIONS, **place.given})
        with place.scan() as source:  # what the process keeps for all scans is there from now on
            assert len(list(source)) == len(CITIES)
    gc.collect()
    return places


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tables: dict[str, Place]) -> Place:
    return tables[request.param]


@pytest.fixture
def store(tables: dict[str, Place], gate: Gate) -> Iterator[Place]:
    """The table in the store, whose partitions are not listed until the gate is opened."""
    gate.open.clear()
    gate.asked.clear()
    yield tables["s3"]
    gate.refuses = False
    gate.open.set()


def nothing_is_left(place: Place, before: Held) -> None:
    until(lambda: not place.held() - before)


def test_nothing_is_left_of_a_scan_that_is_read_to_its_end(place: Place) -> None:
    before = place.held()
    source = place.scan()
    assert len(list(source)) == len(CITIES)
    nothing_is_left(place, before)  # without a close
    source.close()


def test_nothing_is_left_after_a_close(place: Place) -> None:
    before = place.held()
    source = place.scan(**SLOW)
    assert source.get_next_batch(1).splits
    assert place.held() - before
    source.close()
    assert not {one for one in place.held() - before if one.startswith("thread")}
    nothing_is_left(place, before)


def test_nothing_is_left_after_an_error(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    real = SnapshotListing.list_files

    def fails(
        listing: SnapshotListing, partitions: Sequence[PartitionPath]
    ) -> Sequence[PlannedSlice]:
        found = real(listing, partitions)
        if CITIES[20] in partitions:
            raise OSError("no city")
        return found

    before = place.held()
    monkeypatch.setattr(SnapshotListing, "list_files", fails)
    source = place.scan()
    with pytest.raises(OSError, match="no city"):
        list(source)
    nothing_is_left(place, before)  # without a close
    assert source.progress.state is LoadState.FAILED


def test_nothing_is_left_of_what_is_given_up(place: Place) -> None:
    before = place.held()
    source: SplitSource | None = place.scan(**SLOW)
    assert source is not None
    assert source.get_next_batch(1).splits
    assert place.held() - before
    source = None
    gc.collect()
    nothing_is_left(place, before)


# --- while the store is asked
def connections(held: Held) -> Held:
    return {one for one in held if "socket:" in one}


@pytest.mark.parametrize("is_closed", [True, False], ids=["closed", "given up"])
def test_no_connection_is_left_of_a_scan_that_lists(
    store: Place, gate: Gate, is_closed: bool
) -> None:
    before = store.held()
    source: SplitSource | None = store.scan()
    assert gate.asked.wait(30)
    assert connections(store.held() - before), "it is asking"
    if is_closed and source is not None:
        closing = threading.Thread(target=source.close)
        closing.start()
        gate.open.set()
        closing.join(30)
        assert not closing.is_alive()
    source = None
    gc.collect()
    gate.open.set()
    nothing_is_left(store, before)


def test_no_connection_is_left_of_a_listing_that_is_refused(store: Place, gate: Gate) -> None:
    before = store.held()
    gate.refuses = True
    source = store.scan()
    assert gate.asked.wait(30)
    assert connections(store.held() - before), "it is asking"
    gate.open.set()
    with pytest.raises(StorageError, match=r"403|denied|permission"):
        list(source)
    nothing_is_left(store, before)  # without a close
