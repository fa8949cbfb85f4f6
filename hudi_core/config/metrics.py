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


_key = keys_below("hoodie.metrics.", Group.METRICS)
ON: Final[ConfigKey[bool]] = _key(
    "on",
    default=False,
    parse=boolean,
    doc="Whether metrics are published. Needs prometheus-client: `pip install hudi-core[metrics]`.",
)
REPORTER: Final[ConfigKey[Reporter]] = _key(
    "reporter.type",
    default=Reporter.PROMETHEUS,
    parse=Reporter,
    choices=tuple(Reporter),
    doc="PROMETHEUS answers Prometheus on a port of this process. INMEMORY keeps the numbers in "
    "the default registry of prometheus-client, for programs that publish that themselves.",
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
        Where it goes.
    prefix
        What names begin with.
    host, port
        Where Prometheus finds them.
    """

    enabled: bool
    reporter: Reporter
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
        return cls(
            enabled=ON.read(options) and OF_METADATA.read(options) is not False,
            reporter=REPORTER.read(options),
            prefix=PREFIX.read(options),
            host=HOST.read(options),
            port=PORT.read(options),
        )
