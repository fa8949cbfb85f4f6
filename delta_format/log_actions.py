"""Actions of a Delta log: one JSON object per line.

Each has one key.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

LogAction = Mapping[str, Any]
"""One action, as the protocol of Delta has it."""


def transaction(app_id: str, version: int, last_updated: int) -> LogAction:
    """The action that sets the version of an application.

    ``last_updated`` is in milliseconds since the epoch.
    """
    return {"txn": {"appId": app_id, "version": version, "lastUpdated": last_updated}}


def now_ms() -> int:
    """The time, in milliseconds since the epoch."""
    return int(time.time() * 1000)


def lines(actions: Sequence[LogAction]) -> bytes:
    """The bytes of a version with these actions."""
    texts = (json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in actions)
    return "".join(f"{text}\n" for text in texts).encode()
