"""The options of metrics: whether what is measured is published, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from hudi_core.config.key import ConfigKey, Group, keys_below
from hudi_core.config.metadata_keys import METRICS as OF_METADATA
from hudi_core.config.parsers import boolean, integer


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


_key = keys_below("hoodie.metrics.", Group.METRICS)
ON: Final[ConfigKey[bool]] = _key(
    "on",
    default=False,
    parse=boolean,
    doc="Whether metrics are published. Needs prometheus-client: `pip install hudi-core[metrics]`.",
)
REPORTER: Final[ConfigKey[Reporter | None]] = _key(
    "reporter.type",
    default=Reporter.PROMETHEUS,
    parse=reporter,
    doc="PROMETHEUS answers Prometheus on a port of this process. INMEMORY keeps the numbers in "
    "the default registry of prometheus-client, for programs that publish that themselves. Hudi's "
    "other reporters are not built yet: they are warned of, and nothing is published.",
    hudi_default="GRAPHITE",
    reason="Prometheus is what there is.",
)
PREFIX: Final[ConfigKey[str]] = _key(
    "reporter.metricsname.prefix",
    default="",
    default_text="(none)",
    parse=str,
    doc="What the names of metrics begin with.",
    hudi_default="(the table's name)",
    reason="The table is a label of each metric, so that one query is good for all tables.",
)
PORT: Final[ConfigKey[int]] = _key(
    "prometheus.port",
    default=9090,
    parse=integer(1, 65535),
    doc="PROMETHEUS: the port. One server answers for all tables of the process that name it.",
)
HOST: Final[ConfigKey[str]] = _key(
    "prometheus.host",
    default="127.0.0.1",
    parse=str,
    doc="PROMETHEUS: the address to listen on; 0.0.0.0 for all of them, which is what Hudi does, "
    "without an option.",
)

KEYS: Final[tuple[ConfigKey[Any], ...]] = (ON, REPORTER, PREFIX, PORT, HOST)


@dataclass(frozen=True, slots=True)
class MetricsConfig:
    """What the options say of metrics.

    Attributes
    ----------
    enabled
        Whether what is measured of the metadata table is published.
    reporter
        Where it goes; ``None`` with metrics that are not enabled.
    prefix
        What names begin with.
    host, port
        Where Prometheus finds them.
    """

    enabled: bool
    reporter: Reporter | None
    prefix: str
    host: str
    port: int

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> MetricsConfig:
        """Return the view of a user's options.

        Raises
        ------
        InvalidOptionError
            A value that cannot be used.
        """
        reporter = REPORTER.read(options)
        is_on = ON.read(options) and OF_METADATA.read(options) is not False
        return cls(
            enabled=is_on and reporter is not None,
            reporter=reporter,
            prefix=PREFIX.read(options),
            host=HOST.read(options),
            port=PORT.read(options),
        )
