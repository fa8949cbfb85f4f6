"""An S3 service in a process of its own: deltalake lets no thread of its own run while it waits."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.moto_s3 import S3Service, service_at


@contextmanager
def s3_in_a_process() -> Iterator[S3Service]:
    """Serve S3 from another process."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port))
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield service_at(f"http://127.0.0.1:{port}")
    finally:
        server.terminate()
        server.wait()
