"""Metrics of the metadata table: their names, where they go, and what happens without them."""

from __future__ import annotations

import json
import pickle
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from prometheus_client import REGISTRY, Gauge
from prometheus_client.parser import text_string_to_metric_families

import hudi_core as hudi
from hudi_core import metrics
from hudi_core.config.metrics import MetricsConfig, Reporter
from hudi_core.errors import InvalidOptionError
from hudi_core.metrics import PrometheusMeter, meter_of, metric_name
from hudi_core.model.metering import NO_METER, Metric
from tests.tables import new_table

KEYS_AND_CITIES = pa.schema([("id", pa.string()), ("city", pa.string())])
ON = {"hoodie.metrics.on": "true", "hoodie.metrics.reporter.type": "INMEMORY"}
RFC_15 = {
    *(f"HoodieMetadata.{name}.duration" for name in ("initialize", "sync", "scan")),
    *(f"HoodieMetadata.{name}.count" for name in ("initialize", "sync", "scan")),
    "HoodieMetadata.validate_errors.count",
    "HoodieMetadata.validate_partitions.duration",
    "HoodieMetadata.lookup_partitions.count",
    "HoodieMetadata.validate_files.duration",
    "HoodieMetadata.lookup_files.count",
}


@pytest.fixture(autouse=True)
def apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Let each test have gauges and servers of its own."""
    before = list(metrics._gauges.values())  # of a page, say, that was run in this process
    for gauge in before:
        REGISTRY.unregister(gauge)
    gauges: dict[str, Any] = {}
    servers: dict[tuple[str, int], Any] = {}
    monkeypatch.setattr(metrics, "_gauges", gauges)
    monkeypatch.setattr(metrics, "_servers", servers)
    yield gauges
    for gauge in gauges.values():
        REGISTRY.unregister(gauge)
    for server, thread in servers.values():
        server.shutdown()
        server.server_close()
        thread.join()
    for gauge in before:
        REGISTRY.register(gauge)


def cities(*ids: str) -> pa.Table:
    return pa.table({"id": ids, "city": [f"c{len(ids)}"] * len(ids)}, KEYS_AND_CITIES)


def create(path: Path, options: dict[str, str]) -> hudi.Table:
    return new_table(path, KEYS_AND_CITIES, options)


def value(path: Path, name: str, prefix: str = "") -> float | None:
    """Return a metric of a table by RFC-15's name; ``None`` where nothing was noted."""
    labels = {"table": "t", "base_path": str(path)}
    return REGISTRY.get_sample_value(prefix + name.replace(".", "_"), labels)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_everything_that_the_rfc_names_is_measured(tmp_path: Path) -> None:
    path = tmp_path / "t"
    table = create(path, ON)
    table.upsert(cities("a", "b"))
    (first,) = (path / "c2").glob("*.parquet")
    table.upsert(cities("a", "b"))
    table.upsert(cities("a"))
    assert value(path, "HoodieMetadata.initialize.count") == 1
    assert value(path, "HoodieMetadata.sync.count") == 3
    # the metadata table says that it is there
    first.unlink()
    checking = hudi.Table.open(str(path), options={**ON, "hoodie.metadata.validate": "true"})
    before = {name: value(path, name) for name in RFC_15}
    assert checking.to_arrow().num_rows == 3
    after = {name: value(path, name) for name in RFC_15}
    grown = {name for name in RFC_15 if (after[name] or 0) > (before[name] or 0)}
    assert value(path, "HoodieMetadata.validate_errors.count") == 1
    assert grown == {name for name in RFC_15 if name.split(".")[1] not in ("initialize", "sync")}
    assert all(number is not None for number in after.values())


def test_counts_count_and_durations_are_milliseconds(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, ON).upsert(cities("a", "b"))
    looked, scanned = (
        value(path, f"HoodieMetadata.{name}.count") or 0 for name in ("lookup_files", "scan")
    )
    for _ in range(3):
        table = hudi.Table.open(str(path), options=ON)
        table.to_arrow()
        table.to_arrow()  # of what it knows: nothing was committed
    assert (value(path, "HoodieMetadata.lookup_files.count") or 0) - looked == 3
    assert (value(path, "HoodieMetadata.scan.count") or 0) > scanned
    initialized = value(path, "HoodieMetadata.initialize.duration")
    assert initialized is not None
    assert 0.1 < initialized < 600_000


def test_nothing_is_measured_unless_it_is_asked_for(tmp_path: Path) -> None:
    for number, options in enumerate(
        [
            {},
            {**ON, "hoodie.metrics.on": "false"},
            {**ON, "hoodie.metadata.metrics.enable": "false"},
            {"hoodie.metadata.metrics.enable": "true"},
        ]
    ):
        table = create(tmp_path / str(number), options)
        table.upsert(cities("a"))
        assert table._session.opened.client.meter is NO_METER
    assert metrics._gauges == {}


def test_names_begin_with_the_prefix(tmp_path: Path) -> None:
    path = tmp_path / "t"
    create(path, {**ON, "hoodie.metrics.reporter.metricsname.prefix": "lake.9"}).upsert(cities("a"))
    assert value(path, "HoodieMetadata.sync.count", "lake_9_") == 1
    assert metric_name("", Metric.SCAN, "duration") == "HoodieMetadata_scan_duration"


def test_prometheus_is_answered(tmp_path: Path) -> None:
    port = free_port()
    options = {
        **ON,
        "hoodie.metrics.reporter.type": "prometheus",
        "hoodie.metrics.prometheus.port": str(port),
    }
    paths = [tmp_path / name for name in ("one", "two")]
    for path in paths:
        create(path, options).upsert(cities("a"))
    assert len(metrics._servers) == 1
    (server, _) = metrics._servers["127.0.0.1", port]
    assert server.server_address[0] == "127.0.0.1"
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    found = {family.name: family for family in families}
    counts = found["HoodieMetadata_sync_count"]
    assert counts.type == "gauge"
    assert {one.labels["base_path"]: one.value for one in counts.samples} == {
        str(path): 1.0 for path in paths
    }


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        options = {
            **ON,
            "hoodie.metrics.reporter.type": "PROMETHEUS",
            "hoodie.metrics.prometheus.port": str(port),
        }
        with pytest.raises(InvalidOptionError, match=rf"{port}.*cannot be listened on"):
            create(tmp_path / "t", options)


def test_a_name_that_is_taken_is_named(tmp_path: Path) -> None:
    gauge = Gauge("mine_HoodieMetadata_scan_count", "of somebody else")
    try:
        with pytest.raises(InvalidOptionError, match="Choose another prefix"):
            create(tmp_path / "t", {**ON, "hoodie.metrics.reporter.metricsname.prefix": "mine"})
    finally:
        REGISTRY.unregister(gauge)


@pytest.mark.parametrize("kind", ["GRAPHITE", "JMX", "prometheus_pushgateway"])
def test_reporters_that_only_hudi_has_publish_nothing(kind: str) -> None:
    assert meter_of({**ON, "hoodie.metrics.reporter.type": kind}, "t", "/t") is NO_METER
    with pytest.raises(InvalidOptionError, match="none of PROMETHEUS, INMEMORY"):
        meter_of({**ON, "hoodie.metrics.reporter.type": "TELEX"}, "t", "/t")


def test_defaults_are_those_of_hudi() -> None:
    config = MetricsConfig.from_options({})
    assert config == MetricsConfig(
        enabled=False, reporter=Reporter.PROMETHEUS, prefix="", port=9090, host="127.0.0.1"
    )


_WITHOUT = """
import json, sys
sys.modules["prometheus_client"] = None
import hudi_core as hudi
from hudi_core.errors import InvalidOptionError
from hudi_core.metrics import meter_of
assert meter_of({}, "t", "/t").count("scan") is None
try:
    meter_of({"hoodie.metrics.on": "true"}, "t", "/t")
except InvalidOptionError as error:
    print(json.dumps(str(error)))
"""


@pytest.mark.impure
def test_without_the_extra_it_is_named() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT], capture_output=True, text=True, check=True
    )
    assert "pip install hudi-core[metrics]" in json.loads(done.stdout)


def test_a_meter_may_be_sent_away(tmp_path: Path, apart: dict[str, Any]) -> None:
    """To executors; there is nothing there to add to, and no harm done."""
    meter = meter_of(ON, "t", str(tmp_path))
    sent = pickle.loads(pickle.dumps(meter))
    assert sent == meter == PrometheusMeter("t", str(tmp_path))
    gauges = dict(apart)
    apart.clear()
    with sent.time(Metric.SCAN):
        sent.count(Metric.LOOKUP_FILES)
    apart.update(gauges)
    assert value(tmp_path, "HoodieMetadata.scan.count") is None


def test_what_fails_is_not_counted(tmp_path: Path) -> None:
    meter = meter_of(ON, "t", str(tmp_path))
    with pytest.raises(ZeroDivisionError), meter.time(Metric.SYNC):
        1 / 0  # noqa: B018 - it is to fail
    assert value(tmp_path, "HoodieMetadata.sync.count") is None
