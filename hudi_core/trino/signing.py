"""Signatures of splits and of continuation tokens.

Layout of a token: version (1 byte), HMAC-SHA256 of kind and rest (32 bytes), the second in which it
expires (8 bytes), SHA-256 of what it was made for (32 bytes), body.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

from hudi_core.config.trino import SIGNING_KEY_VARIABLE, TrinoConfig
from hudi_core.errors import InvalidOptionError, RefusedCallError

_VERSION: Final = b"\x01"
_DIGEST: Final = hashlib.sha256
_MAC: Final = slice(1, 33)
_SIGNED: Final = slice(33, None)
_HEAD: Final = struct.Struct(">Q32s")
_LEAST_KEY: Final = 32
"""Characters: as many as the bytes of the digest, of which hexadecimal ones hold half."""
_MOST_KEYS: Final = 1 << 16
"""Bytes of a file of keys."""
_STEPS: Final = 16
"""Expiry is rounded up to a sixteenth of the lifetime: calls that are repeated get equal tokens."""


class SignedKind(StrEnum):
    """What a token is for; none is taken for another."""

    SPLIT = "split"
    MORE_SPLITS = "continuation of splits"
    MORE_ROWS = "continuation of rows"


class TokenSigner:
    """Signs tokens, and verifies them.

    The first of ``keys`` signs, each is accepted. ``lifetime_s`` is the least time for which a
    token holds.
    """

    def __init__(
        self, keys: Sequence[bytes], lifetime_s: float, clock: Callable[[], float] = time.time
    ) -> None:
        self._keys = tuple(keys)
        self._lifetime_s, self._clock = lifetime_s, clock

    @classmethod
    def of(cls, config: TrinoConfig, environment: Mapping[str, str] = os.environ) -> Self:
        """The signer of options and environment.

        Without a key in either, one with a random key.
        """
        option = TrinoConfig.signing_key_file.key
        if config.signing_key_file is not None:
            shown = config.signing_key_file
            keys = _keys(option, shown, _file_text(option, config.signing_key_file))
        elif SIGNING_KEY_VARIABLE in environment:
            keys = _keys(SIGNING_KEY_VARIABLE, "***", environment[SIGNING_KEY_VARIABLE])
        else:
            keys = [secrets.token_bytes(_LEAST_KEY)]
        return cls(keys, config.split_lifetime_s)

    def sign(self, kind: SignedKind, body: bytes, made_for: bytes = b"") -> bytes:
        """The token of a body.

        ``made_for`` is the only thing that the token can be used with.
        """
        signed = _HEAD.pack(self._until(), _DIGEST(made_for).digest()) + body
        return _VERSION + _mac(self._keys[0], kind, signed) + signed

    def verified(self, kind: SignedKind, token: bytes, made_for: bytes = b"") -> bytes:
        """The body of a token."""
        what, signed = f"A {kind}", token[_SIGNED]
        macs = [_mac(key, kind, signed) for key in self._keys]
        matches = [hmac.compare_digest(one, token[_MAC]) for one in macs]
        if token[:1] != _VERSION or not any(matches) or len(signed) < _HEAD.size:
            raise RefusedCallError(
                what,
                "it was not signed by this service, or was changed since",
                "Run the query again. Servers behind one catalog, and one that is started again, "
                f"need the same key: {TrinoConfig.signing_key_file.key}.",
            )
        until, digest = _HEAD.unpack_from(signed)
        if not hmac.compare_digest(digest, _DIGEST(made_for).digest()):
            raise RefusedCallError(
                what,
                "it was handed out for another scan, split or choice of columns",
                "Bring it back with what it was handed out for.",
            )
        if until <= self._clock():
            expired = datetime.fromtimestamp(until, UTC).isoformat()
            raise RefusedCallError(
                what,
                f"it expired at {expired}",
                "Run the query again; for queries that take longer, set "
                f"{TrinoConfig.split_lifetime_s.key}.",
            )
        return signed[_HEAD.size :]

    def _until(self) -> int:
        step = max(1.0, self._lifetime_s / _STEPS)
        return int((self._clock() // step + 1) * step + self._lifetime_s) + 1


def _mac(key: bytes, kind: SignedKind, signed: bytes) -> bytes:
    found = hmac.new(key, _VERSION + kind.encode() + b"\x00", _DIGEST)
    found.update(signed)
    return found.digest()


def _file_text(option: str, path: str) -> str:
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_KEYS).decode("ascii")
    except OSError as error:
        reason = error.strerror or str(error)
        raise InvalidOptionError(option, path, reason, "Name a file of keys.") from error
    except UnicodeDecodeError as error:
        raise InvalidOptionError(
            option,
            path,
            "its bytes are no ASCII text",
            "Give a line of text, such as `openssl rand -hex 32` prints.",
        ) from error


def _keys(name: str, shown: str, text: str) -> list[bytes]:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines or min(map(len, lines)) < _LEAST_KEY:
        raise InvalidOptionError(
            name,
            shown,
            f"a key has fewer than {_LEAST_KEY} characters",
            "Make one by `openssl rand -hex 32`.",
        )
    return [line.encode() for line in lines]
