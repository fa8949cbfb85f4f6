"""Metrics of the metadata table, by RFC-15's names, for Prometheus.

``HoodieMetadata.scan.duration`` is ``HoodieMetadata_scan_duration`` there, where dots are not
allowed. A duration adds up milliseconds, a count adds up how often. Both are gauges, as Hudi's are,
with the labels ``table``, its name, and ``base_path``. What executors do is not measured.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from hudi_core.config.metrics import MetricsConfig, Reporter
from hudi_core.config.optional_libraries import require_library
from hudi_core.errors import InvalidOptionError
from hudi_core.model.metering import NO_METER, Meter, Metric

_LABELS: Final = ("table", "base_path")
_DURATION, _COUNT = "duration", "count"
_UNSPELLABLE: Final = re.compile(r"[^a-zA-Z0-9_:]")
_lock: Final = threading.Lock()
_gauges: Final[dict[str, Any]] = {}
_servers: Final[dict[tuple[str, int], Any]] = {}


@dataclass(frozen=True, slots=True)
class PrometheusMeter:
    """Adds up what is measured of one table."""

    table: str
    base_path: str
    prefix: str = ""

    def count(self, metric: Metric, times: int = 1) -> None:
        """Add to a count."""
        self._add(metric, _COUNT, times)

    @contextmanager
    def time(self, metric: Metric) -> Iterator[None]:
        """Add to a duration, and one to its count."""
        begin = time.perf_counter()
        yield
        self._add(metric, _DURATION, (time.perf_counter() - begin) * 1000)
        self._add(metric, _COUNT, 1)

    def _add(self, metric: Metric, what: str, amount: float) -> None:
        gauge = _gauges.get(metric_name(self.prefix, metric, what))
        if gauge is not None:  # there is none in a process that was sent the table
            gauge.labels(self.table, self.base_path).inc(amount)


def meter_of(options: Mapping[str, str], table: str, base_path: str) -> Meter:
    """Meter that a table's options ask for; by default none."""
    config = MetricsConfig.from_options(options)
    if not config.enabled:
        return NO_METER
    library = _library()
    with _lock:
        for metric in Metric:
            for what in (_DURATION, _COUNT):
                _make_gauge(library, metric_name(config.prefix, metric, what), metric, what)
        if config.reporter is Reporter.PROMETHEUS:
            _serve(library, config)
    return PrometheusMeter(table, base_path, config.prefix)


def metric_name(prefix: str, metric: Metric, what: str) -> str:
    """Return the name of a metric as Prometheus spells it."""
    name = f"HoodieMetadata_{metric}_{what}"
    return _UNSPELLABLE.sub("_", f"{prefix}_{name}" if prefix else name)


def _library() -> Any:
    return require_library(
        "prometheus_client",
        "metrics",
        (MetricsConfig.enabled.key, "true"),
        "metrics need prometheus-client",
    )


def _make_gauge(library: Any, name: str, metric: Metric, what: str) -> None:
    if name in _gauges:
        return
    unit = "milliseconds" if what == _DURATION else "times"
    try:
        _gauges[name] = library.Gauge(name, f"HoodieMetadata.{metric}.{what}, {unit}", _LABELS)
    except ValueError as error:
        raise InvalidOptionError(
            MetricsConfig.prefix.key,
            name,
            f"no such metric can be made ({error})",
            "Choose another prefix.",
        ) from error


def _serve(library: Any, config: MetricsConfig) -> None:
    where = config.host, config.port
    if where in _servers:
        return
    try:
        _servers[where] = library.start_http_server(config.port, addr=config.host)
    except OSError as error:
        raise InvalidOptionError(
            MetricsConfig.port.key,
            str(config.port),
            f"{config.host} cannot be listened on there ({error.strerror})",
            f"Choose another port, or another {MetricsConfig.host.key}.",
        ) from error
