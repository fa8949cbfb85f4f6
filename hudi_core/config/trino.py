"""Options of the service that answers Trino's Thrift connector."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from typing import Final, Self

from hudi_core.config.connector import data_size
from hudi_core.config.options import Group, Option, Options
from hudi_core.config.parsers import integer
from hudi_core.errors import InvalidOptionError

SIGNING_KEY_VARIABLE: Final = "HUDI_TRINO_SIGNING_KEY"
"""Name of the environment variable that may hold the signing keys."""
PREFIX: Final = "hudi.trino."
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LONGEST_S: Final = 366 * 86_400


def duration_s(text: str) -> float:
    """Parse a duration such as ``30s``, ``5m``, ``24h`` or ``7d``."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError("it is no duration, such as 30s, 5m or 24h")
    seconds = float(match[1]) * _SECONDS[match[2]]
    if not 0 < seconds <= _LONGEST_S:
        raise ValueError("it is not between 0 and 366d")
    return seconds


class TrinoConfig(Options, group=Group.TRINO):
    """Signatures, connections and limits of the service for Trino."""

    signing_key_file: Option[str | None] = Option(
        "hudi.trino.signing-key-file",
        default_text=f"(the keys in `{SIGNING_KEY_VARIABLE}`, else a random one for the process)",
    )
    """File with the key that signs splits and continuation tokens: a line of at least 32
    characters, such as `openssl rand -hex 32` prints. Servers behind one catalog need the same. Of
    several lines the first signs, and all are accepted, so that a key can be replaced. The
    environment variable `HUDI_TRINO_SIGNING_KEY` may hold the lines instead."""
    split_lifetime_s: Option[float] = Option(
        "hudi.trino.split-lifetime", default=86_400.0, parse=duration_s, default_text="24h"
    )
    """How long splits and continuation tokens are answered after they were handed out: the longest
    time that a query may need for what it has planned."""
    certificate_file: Option[str | None] = Option(
        "hudi.trino.tls.certificate-file", default_text="(no TLS)"
    )
    """File with the server's certificate and those between it and its authority, in PEM; with it
    connections are encrypted."""
    private_key_file: Option[str | None] = Option(
        "hudi.trino.tls.private-key-file", default_text="(the file of the certificate)"
    )
    """File with the private key of the certificate, in PEM and without a password."""
    client_ca_file: Option[str | None] = Option(
        "hudi.trino.tls.client-ca-file", default_text="(clients need no certificate)"
    )
    """File with the certificates of the authorities whose clients are let in, in PEM; with it no
    other client is (mutual TLS)."""
    max_connections: Option[int] = Option(
        "hudi.trino.max-connections", default=500, parse=integer(1, 100_000)
    )
    """Open connections at most; each has a thread. For one more, that is closed which has waited
    longest between calls; where all are being answered, the new one."""
    max_requests: Option[int] = Option(
        "hudi.trino.max-concurrent-requests", default=64, parse=integer(1, 100_000)
    )
    """Calls that are worked on at the same time; others wait."""
    queue_timeout_s: Option[float] = Option(
        "hudi.trino.queue-timeout", default=30.0, parse=duration_s, default_text="30s"
    )
    """How long a call waits for its turn, before it is answered with an error that may be tried
    again."""
    idle_timeout_s: Option[float] = Option(
        "hudi.trino.idle-timeout", default=300.0, parse=duration_s, default_text="5m"
    )
    """How long a connection may be silent between calls."""
    frame_timeout_s: Option[float] = Option(
        "hudi.trino.frame-timeout", default=30.0, parse=duration_s, default_text="30s"
    )
    """How long a call that was begun may take to arrive, a TLS handshake to end, and an answer to
    be taken."""
    max_frame_size: Option[int] = Option(
        "hudi.trino.max-frame-size", default=16 << 20, parse=data_size, default_text="16MB"
    )
    """Bytes of a call at most. A split of a wide table takes some hundred kilobytes, a constraint
    of very many values some megabytes."""
    max_values: Option[int] = Option("hudi.trino.max-values", default=1_000_000)
    """Values, ranges and names in the lists of a call, taken together, at most."""
    max_depth: Option[int] = Option("hudi.trino.max-depth", default=32, parse=integer(1, 200))
    """Levels of structs and lists in one another, in fields of a call that the protocol does not
    have and that are skipped, at most."""
    max_columns: Option[int] = Option("hudi.trino.max-columns", default=10_000)
    """Columns of a call for rows at most."""
    max_page_size: Option[int] = Option(
        "hudi.trino.max-page-size", default=16 << 20, parse=data_size, default_text="16MB"
    )
    """Bytes of a page at most, also where Trino takes larger ones; a page of one row may be
    larger."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Self:
        """See :meth:`Options.from_options`.

        An unknown option of the service is refused: what was meant to protect it would have no
        effect. So are client certificates or a private key without the server's certificate.
        """
        known = {name for key in cls.keys for name in key.names}
        for name in options:
            if name.startswith(PREFIX) and name not in known:
                near = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
                hint = f"Did you mean {near[0]}?" if near else "See docs/configuration.md."
                raise InvalidOptionError(
                    name, "***", "the service for Trino has no such option", hint
                )
        config = cls._read(options)
        for needy in (cls.client_ca_file, cls.private_key_file):
            if needy.is_given(options) and config.certificate_file is None:
                raise needy.refused(
                    options[needy.key],
                    f"there is no TLS without {cls.certificate_file.key}",
                    f"Give {cls.certificate_file.key} too.",
                )
        return config
