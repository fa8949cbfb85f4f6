"""A PostgreSQL server of a test: a folder of its own, on a free port of this machine."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg

USER: Final = "hudi"
PASSWORD: Final = "of a test"
DATABASE: Final = "postgres"
_UNPRIVILEGED: Final = "nobody"
_SECONDS: Final = 60


def binaries() -> Path | None:
    """The folder with the server's programs; of several releases the newest."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda one: int(one.parts[-2]))
    return next((one for one in reversed(folders) if (one / "initdb").exists()), None)


@dataclass(frozen=True)
class Server:
    """A server that runs.

    ``port``: where it listens, on 127.0.0.1.
    """

    port: int

    @property
    def url(self) -> str:
        """As tables name it."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{DATABASE}"

    def connect(self) -> psycopg.Connection:
        """A connection that is nobody's but the test's."""
        return psycopg.connect(self.url, password=PASSWORD)


@contextmanager
def server() -> Iterator[Server]:
    """Run a server, which no root may; stop it by the number of its process."""
    programs = binaries()
    assert programs is not None, "python -m tests.postgres.prepare"
    folder = Path(tempfile.mkdtemp(prefix="postgres-", dir="/tmp"))  # socket paths are short
    user = pwd.getpwnam(_UNPRIVILEGED).pw_uid if os.geteuid() == 0 else None
    try:
        secret = folder / "password"
        secret.write_text(PASSWORD)
        if user is not None:
            for one in (folder, secret):
                os.chown(one, user, -1)
        data, port = folder / "data", _free_port()
        options = [f"--pgdata={data}", f"--username={USER}", f"--pwfile={secret}"]
        subprocess.run(
            [
                programs / "initdb",
                *options,
                "--auth=scram-sha-256",
                "--no-sync",
                "--locale=C.UTF-8",
            ],
            check=True,
            user=user,
            stdout=subprocess.DEVNULL,
            cwd=folder,
        )
        settings = ("listen_addresses=127.0.0.1", f"unix_socket_directories={folder}", "fsync=off")
        arguments = [word for one in settings for word in ("-c", one)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [programs / "postgres", "-D", data, "-p", str(port), *arguments],
                user=user,
                stdout=log,
                stderr=log,
                cwd=folder,
            )
        try:
            found = Server(port)
            _wait(found, process, folder / "log")
            yield found
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(_SECONDS)
    finally:
        shutil.rmtree(folder)


def _wait(found: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _SECONDS
    while True:
        try:
            found.connect().close()
        except psycopg.OperationalError:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < end, log.read_text()
            time.sleep(0.1)
        else:
            return


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
