"""A store of S3's protocol with its proxy, in a process of their own, and how to talk to it.

The store is moto's. It keeps the objects of a table as they are, and puts them back, without any
requests: a case of the rig begins within milliseconds.
"""

from __future__ import annotations

import http.client
import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from tests.crash.s3_faults import S3Fault
from tests.crash.s3_proxy import CONTROL, S3Proxy

BUCKET: Final = "crash-rig"
REGION: Final = "us-east-1"
_PROJECT: Final = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class S3Service:
    """Where the store is.

    ``endpoint``: URL of the store itself. ``proxy``: URL of the proxy in front of it.
    """

    endpoint: str
    proxy: str

    def arm(self, fault: S3Fault | None = None) -> None:
        """Count the changing requests from one on, with this going wrong."""
        self._tell("arm", {} if fault is None else fault._asdict())

    def names(self) -> list[str]:
        """Return the names of the changing requests since then."""
        found: list[str] = self._tell("names")
        return found

    def land(self) -> int:
        """Let all that travels arrive; return how many requests did."""
        return int(self._tell("land"))

    def keep(self, name: str) -> None:
        """Remember what the bucket holds."""
        self._tell("keep", {"name": name})

    def restore(self, name: str | None = None) -> None:
        """Make the bucket hold what was remembered, or nothing; nothing travels any more."""
        self._tell("restore", {} if name is None else {"name": name})

    def age(self, seconds: int) -> None:
        """Make all objects older."""
        self._tell("age", {"seconds": seconds})

    def cpu_s(self) -> float:
        """Return the seconds that the store and the proxy have taken of the processor."""
        return float(self._tell("cpu"))

    def _tell(self, what: str, given: Mapping[str, Any] | None = None) -> Any:
        connection = http.client.HTTPConnection(self.proxy.removeprefix("http://"), timeout=60)
        try:
            connection.request("GET", f"{CONTROL}{what}?{urlencode(given or {})}")
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@contextmanager
def s3_service() -> Iterator[S3Service]:
    """Start a store with its proxy."""
    # a process that imports this module anew: what it prints is where it listens
    command = (sys.executable, "-m", "tests.crash.s3_service")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=_PROJECT
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the store did not start"
        yield S3Service(**json.loads(line))
        process.stdin.close()


class _Kept:
    """What moto's bucket held, by name."""

    def __init__(self) -> None:
        from moto.core.models import DEFAULT_ACCOUNT_ID  # noqa: PLC0415
        from moto.s3.models import s3_backends  # noqa: PLC0415

        self._backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        self._states: dict[str, list[tuple[str, bytes, dict[str, Any]]]] = {}
        self._backend.create_bucket(BUCKET, REGION)

    def keep(self, name: str) -> None:
        keys = self._backend.get_bucket(BUCKET).keys.values()
        self._states[name] = [(key.name, key.value, dict(key.metadata)) for key in keys]

    def restore(self, name: str | None) -> None:
        bucket = self._backend.get_bucket(BUCKET)
        bucket.keys.clear()
        bucket.multiparts.clear()
        for key, value, metadata in self._states[name] if name is not None else ():
            self._backend.put_object(BUCKET, key, value).set_metadata(metadata)

    def age(self, seconds: int) -> None:
        for key in self._backend.get_bucket(BUCKET).keys.values():
            key.last_modified -= timedelta(seconds=seconds)


def _serve() -> None:
    """Serve until the one who started this process closes its input."""
    # seconds to import, which others need not pay
    from moto.moto_server.werkzeug_app import create_backend_app  # noqa: PLC0415
    from werkzeug.serving import make_server  # noqa: PLC0415

    from tests.moto_s3 import Lasting, OneChangeAtATime  # noqa: PLC0415

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    app = OneChangeAtATime(create_backend_app("s3"))
    store = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Lasting)
    kept = _Kept()

    def restore(asked: Mapping[str, str]) -> None:
        proxy.faults.arm(None)
        proxy.faults.landing()
        kept.restore(asked.get("name"))

    proxy = S3Proxy(
        f"127.0.0.1:{store.server_port}",
        {
            "keep": lambda asked: kept.keep(asked["name"]),
            "restore": restore,
            "age": lambda asked: kept.age(int(asked["seconds"])),
            "cpu": lambda _: time.process_time(),
        },
    )
    for server in (store, proxy):
        threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{store.server_port}"
    print(json.dumps({"endpoint": endpoint, "proxy": proxy.endpoint}), flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    _serve()
