"""S3 services for tests: moto, served by this process; seconds to import."""

from __future__ import annotations

import io
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import pyarrow.fs as pafs
from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

from hudi_core.storage.options import StorageOptions

# moto's buckets belong to the process, whichever of its servers changes them
_CHANGES: Final = threading.Lock()


@dataclass(frozen=True)
class S3Service:
    """Where an S3 service is and how to reach it."""

    endpoint: str
    given: dict[str, str]
    options: StorageOptions
    filesystem: pafs.FileSystem

    @property
    def rust(self) -> dict[str, str]:
        """How libraries in Rust reach it."""
        return {
            "aws_access_key_id": "test-access-key",
            "aws_secret_access_key": "test-secret-key",
            "aws_endpoint": self.endpoint,
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }

    @property
    def pyiceberg(self) -> dict[str, str]:
        """How pyiceberg reaches it."""
        return {
            "s3.endpoint": self.endpoint,
            "s3.access-key-id": "test-access-key",
            "s3.secret-access-key": "test-secret-key",
            "s3.region": "us-east-1",
        }

    def new_root(self, folder: str = "tables/one") -> str:
        """Make a bucket and return the URI of a folder in it."""
        bucket = f"bucket-{uuid.uuid4().hex}"
        self.filesystem.create_dir(bucket)
        return f"s3://{bucket}/{folder}"

    def paths(self, root: str) -> list[str]:
        """Return the bucket and key of everything that is stored below a URI."""
        selector = pafs.FileSelector(root.removeprefix("s3://"), recursive=True)
        return [info.path for info in self.filesystem.get_file_info(selector) if info.is_file]

    def objects(self, root: str) -> dict[str, bytes]:
        """Return everything that is stored below a URI."""
        return {one: self.filesystem.open_input_file(one).read() for one in self.paths(root)}


class OneChangeAtATime:
    """Let changing requests in one by one, so that a condition holds until its put.

    S3 checks and puts in one step; moto does so in two, and its threads meet between them.
    """

    def __init__(self, application: Any) -> None:
        self._application = application

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in {"GET", "HEAD"}:
            found: Iterable[bytes] = self._application(environ, start_response)
            return found
        with _CHANGES:
            return list(self._application(environ, start_response))


_backend: Final = cache(create_backend_app)


def _answer(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answer by S3, or by DynamoDB, whose requests name it.

    For each request moto itself looks through all its services, in a third of what it takes.
    """
    is_dynamo = environ.get("HTTP_X_AMZ_TARGET", "").startswith("DynamoDB")
    found: Iterable[bytes] = _backend("dynamodb" if is_dynamo else "s3")(environ, start_response)
    return found


class Ending(WSGIRequestHandler):
    """Ends a connection with its answer, as werkzeug does, so that no client keeps one.

    It logs no request.
    """

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        pass


class Lasting(Ending):
    """Keeps a connection for the next request, as stores do.

    Else each takes a connection, a thread and a wait for the client's end: more than moto takes.
    """

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # each answer is sent in one piece

    def run_wsgi(self) -> None:
        """Answer one request."""
        if self.headers.get("Expect", "").strip().lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self.wfile.flush()
        self.environ = environ = self.make_environ()
        # all of the body, as the next request is behind it
        is_chunked = "wsgi.input_terminated" in environ
        size = -1 if is_chunked else int(environ.get("CONTENT_LENGTH") or 0)
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(size))
        head: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], _: Any = None) -> Any:
            head.update(status=status, headers=headers)

        answer = self.server.app(environ, start_response)
        body = b"".join(answer)
        if hasattr(answer, "close"):
            answer.close()
        code, _, reason = head["status"].partition(" ")
        self.send_response(int(code), reason)
        for name, value in head["headers"]:
            self.send_header(name, value)
        has_body = self.command != "HEAD" and code not in ("204", "304")
        if has_body and "content-length" not in {name.lower() for name, _ in head["headers"]}:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if has_body else b"")


@contextmanager
def serving(
    middleware: Callable[[Any], Any], handler: type[WSGIRequestHandler] = Lasting
) -> Iterator[S3Service]:
    """Serve S3 from this process, on the loopback device and a free port."""
    application = middleware(OneChangeAtATime(_answer))
    server = make_server("127.0.0.1", 0, application, threaded=True, request_handler=handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield service_at(f"http://127.0.0.1:{server.port}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def service_at(endpoint: str) -> S3Service:
    """How a service is reached, and its file system."""
    given = {
        "fs.s3a.access.key": "test-access-key",
        "fs.s3a.secret.key": "test-secret-key",
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
    }
    filesystem = pafs.S3FileSystem(
        access_key="test-access-key",
        secret_key="test-secret-key",
        endpoint_override=endpoint,
        region="us-east-1",
        allow_bucket_creation=True,
    )
    return S3Service(endpoint, given, StorageOptions.from_options(given, {}), filesystem)
