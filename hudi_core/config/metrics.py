"""The options of metrics: whether what is measured is published, and where."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Self

from hudi_core.config.metadata_keys import MetadataConfig
from hudi_core.config.options import Group, Option, Options
from hudi_core.config.parsers import integer


class Reporter(StrEnum):
    """Where metrics go."""

    PROMETHEUS = "PROMETHEUS"
    INMEMORY = "INMEMORY"


_OF_HUDI: Final = frozenset(
    {
        "CLOUDWATCH",
        "CONSOLE",
        "DATADOG",
        "GRAPHITE",
        "JMX",
        "M3",
        "PROMETHEUS_PUSHGATEWAY",
        "SLF4J",
    }
)
"""Reporters of Hudi's that this release does not have; who asks for one is warned."""


def reporter(text: str) -> Reporter | None:
    """Parse a reporter; ``None`` for one that only Hudi has."""
    word = text.upper()
    if word in _OF_HUDI:
        return None
    if word not in list(Reporter):
        raise ValueError(f"it is none of {', '.join(Reporter)}")
    return Reporter(word)


class MetricsConfig(Options, group=Group.METRICS):
    """Whether what is measured of the metadata table is published, and where.

    ``reporter`` is ``None`` for one that only Hudi has; nothing is enabled then.
    """

    enabled: Option[bool] = Option("hoodie.metrics.on", default=False)
    """Whether metrics are published. Needs prometheus-client: `pip install hudi-core[metrics]`."""
    reporter: Option[Reporter | None] = Option(
        "hoodie.metrics.reporter.type",
        default=Reporter.PROMETHEUS,
        parse=reporter,
        hudi_default="GRAPHITE",
        reason="Prometheus is what there is.",
    )
    """PROMETHEUS answers Prometheus on a port of this process. INMEMORY keeps the numbers in the
    default registry of prometheus-client, for programs that publish that themselves. Hudi's other
    reporters are not built yet: they are warned of, and nothing is published."""
    prefix: Option[str] = Option(
        "hoodie.metrics.reporter.metricsname.prefix",
        default="",
        default_text="(none)",
        hudi_default="(the table's name)",
        reason="The table is a label of each metric, so that one query is good for all tables.",
    )
    """What the names of metrics begin with."""
    port: Option[int] = Option(
        "hoodie.metrics.prometheus.port", default=9090, parse=integer(1, 65535)
    )
    """PROMETHEUS: the port. One server answers for all tables of the process that name it."""
    host: Option[str] = Option("hoodie.metrics.prometheus.host", default="127.0.0.1")
    """PROMETHEUS: the address to listen on; 0.0.0.0 for all of them, which is what Hudi does,
    without an option."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`."""
        is_on = cls.enabled.read(options) and MetadataConfig.metrics.read(options) is not False
        reporter = cls.reporter.read(options)
        return cls._read(options, enabled=is_on and reporter is not None)
