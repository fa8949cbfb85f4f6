"""An S3 service in a process of its own: deltalake lets no thread of its own run while it waits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.moto_s3 import S3Service, service_at, serving


@contextmanager
def s3_in_a_process() -> Iterator[S3Service]:
    """Serve S3 from another process, which finds a port itself and lives until its input ends."""
    command = (sys.executable, "-m", "tests.s3_process")
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        endpoint = server.stdout.readline().strip()
        assert endpoint, "the S3 service has ended before it served"
        yield service_at(endpoint)


if __name__ == "__main__":
    with serving(lambda application: application) as service:
        print(service.endpoint, flush=True)
        sys.stdin.read()
