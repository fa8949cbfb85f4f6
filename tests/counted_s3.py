"""An S3 service in a process of its own that keeps account of its requests.

deltalake lets no other thread of its process run while it waits for an answer.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs

_BUCKET = "counted"


@dataclass(frozen=True)
class CountedS3:
    """The service.

    ``given``: options of Hudi by which it is reached. ``log``: a file with a line for each request:
    method and path.
    """

    given: dict[str, str]
    log: Path

    def root(self, name: str) -> str:
        """URI of a folder in it."""
        return f"s3://{_BUCKET}/{name}"

    def requests(self) -> list[str]:
        """All requests so far."""
        return self.log.read_text().splitlines()


@contextmanager
def counted_s3(log: Path) -> Iterator[CountedS3]:
    """Serve S3 on the loopback device for the length of the block."""
    command = (sys.executable, "-m", "tests.counted_s3", str(log))
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[1],
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        assert port, "the service did not start"
        endpoint = f"http://127.0.0.1:{port}"
        pafs.S3FileSystem(
            access_key="key",
            secret_key="secret",
            endpoint_override=endpoint,
            region="us-east-1",
            allow_bucket_creation=True,
        ).create_dir(_BUCKET)
        yield CountedS3(
            {
                "fs.s3a.access.key": "key",
                "fs.s3a.secret.key": "secret",
                "fs.s3a.endpoint": endpoint,
                "fs.s3a.endpoint.region": "us-east-1",
                "fs.s3a.path.style.access": "true",
            },
            log,
        )
        process.stdin.close()


def _serve(log: Path) -> None:
    """Serve until the one who started this process closes its input."""
    # seconds to import, which the other process need not pay
    from tests.moto_s3 import serving  # noqa: PLC0415

    with log.open("a", buffering=1) as lines:

        def counting(application: Any) -> Any:
            def answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
                lines.write(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}\n")
                found: Iterable[bytes] = application(environ, start_response)
                return found

            return answer

        with serving(counting) as service:
            print(service.endpoint.rpartition(":")[2], flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
