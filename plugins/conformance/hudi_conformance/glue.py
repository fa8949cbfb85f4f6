"""AWS Glue for tests, as moto serves it.

With the one check that it leaves out: the version of an update.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.backends import get_backend
from moto.moto_server.werkzeug_app import create_backend_app
from werkzeug.serving import make_server

_ACCOUNT, _REGION = "123456789012", "us-east-1"


@contextmanager
def glue_service() -> Iterator[str]:
    """Serve Glue from this process; give its address.

    On the loopback device, and a free port.
    """
    application = _Compared(create_backend_app("glue"))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Compared:
    """Refuses an update of another version than the request names.

    Glue answers so (``UpdateTable``, ``VersionId``); moto takes every update.
    """

    def __init__(self, application: Any) -> None:
        self._application = application
        self._lock = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if not environ.get("HTTP_X_AMZ_TARGET", "").endswith(".UpdateTable"):
            found: Iterable[bytes] = self._application(environ, start_response)
            return found
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        environ["wsgi.input"] = io.BytesIO(body)
        asked = json.loads(body)
        with self._lock:
            backend = get_backend("glue")[_ACCOUNT][_REGION]
            name = asked["TableInput"]["Name"]
            table = backend.get_table(asked["DatabaseName"], name).as_dict()
            if asked["VersionId"] == table["VersionId"]:
                return list(self._application(environ, start_response))
        start_response("400 Bad Request", [("Content-Type", "application/x-amz-json-1.1")])
        kind = {"__type": "ConcurrentModificationException", "Message": "another version"}
        return [json.dumps(kind).encode()]
