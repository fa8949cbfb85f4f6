"""A store of S3's protocol for benchmarks: moto's, in a process of its own."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

_KEY, _SECRET, _REGION, _BUCKET = "bench", "bench-secret", "us-east-1", "bench"


@dataclass(frozen=True)
class Store:
    """Where tables are made, and how each library reaches it.

    ``root``: path or URI. ``folder``: a local folder, for what must be on a disk. ``hudi``,
    ``deltalake``, ``pyiceberg``: options of this project, of deltalake and of pyiceberg.
    """

    root: str
    folder: Path
    hudi: Mapping[str, str] = field(default_factory=dict)
    deltalake: dict[str, str] | None = None
    pyiceberg: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def object_store(folder: Path, wait_s: float = 0.0) -> Iterator[Store]:
    """Serve S3 on the loopback device for the length of the block.

    ``wait_s``: how long each answer is held back, as one of a real store is by the way to it.
    """
    with subprocess.Popen(
        (sys.executable, __file__, str(wait_s)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        if not port:
            raise SystemExit("the object store did not start")
        endpoint = f"http://127.0.0.1:{port}"
        pafs.S3FileSystem(
            access_key=_KEY,
            secret_key=_SECRET,
            region=_REGION,
            endpoint_override=endpoint,
            allow_bucket_creation=True,
        ).create_dir(_BUCKET)
        yield Store(
            f"s3://{_BUCKET}/tables",
            folder,
            {
                "fs.s3a.access.key": _KEY,
                "fs.s3a.secret.key": _SECRET,
                "fs.s3a.endpoint": endpoint,
                "fs.s3a.endpoint.region": _REGION,
                "fs.s3a.path.style.access": "true",
            },
            {
                "AWS_ACCESS_KEY_ID": _KEY,
                "AWS_SECRET_ACCESS_KEY": _SECRET,
                "AWS_REGION": _REGION,
                "AWS_ENDPOINT_URL": endpoint,
                "AWS_ALLOW_HTTP": "true",
            },
            {
                "s3.access-key-id": _KEY,
                "s3.secret-access-key": _SECRET,
                "s3.region": _REGION,
                "s3.endpoint": endpoint,
            },
        )
        server.stdin.close()


def _serve(wait_s: float) -> None:
    """Serve until the one who started this process closes its input."""
    # seconds to import, which others need not pay
    from moto.moto_server.werkzeug_app import create_backend_app  # noqa: PLC0415
    from werkzeug.serving import WSGIRequestHandler, make_server  # noqa: PLC0415

    class Lasting(WSGIRequestHandler):
        """Keeps a connection for the next request, as a store does."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

    app = create_backend_app("s3")

    def waiting(*request: Any) -> Any:
        time.sleep(wait_s)
        return app(*request)

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = make_server("127.0.0.1", 0, waiting, threaded=True, request_handler=Lasting)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()
    server.shutdown()


if __name__ == "__main__":
    _serve(float(sys.argv[1]))
