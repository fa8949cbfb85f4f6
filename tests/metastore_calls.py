"""What a Hive metastore is asked, noted on its side of the connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from hive_metastore import ThriftHiveMetastore
from hudi_conformance.hive_metastore import HiveMetastore as Service
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TTransport import TMemoryBuffer


@dataclass
class Recorder:
    """Stands before a metastore, and notes what it is asked."""

    port: int
    asked: list[tuple[str, int]]
    open: list[socket.socket]

    @property
    def uri(self) -> str:
        return f"thrift://127.0.0.1:{self.port}"


@contextmanager
def recorded(service: Service, before: Callable[[str], None] | None = None) -> Iterator[Recorder]:
    """Let calls through, and note the names and the partitions of each."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        recorder = Recorder(listening.getsockname()[1], [], [])

        def serve() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                recorder.open.append(client)
                pump = threading.Thread(target=let_through, args=(client,), daemon=True)
                pump.start()

        def let_through(client: socket.socket) -> None:
            with client, socket.create_connection(("127.0.0.1", service.port)) as server:
                answers = threading.Thread(target=copy, args=(server, client, None), daemon=True)
                answers.start()
                copy(client, server, recorder.asked)
            recorder.open.remove(client)

        def copy(one: socket.socket, other: socket.socket, asked: list[Any] | None) -> None:
            pending = b""
            while data := _received(one):
                pending += data
                call = None if asked is None else _call(pending)
                if asked is not None and call is not None:
                    asked.append(call)
                    if before is not None:
                        before(call[0])
                    pending = b""
                with suppress(OSError):  # one of them has gone meanwhile
                    other.sendall(data)

        threading.Thread(target=serve, daemon=True).start()
        yield recorder
        listening.shutdown(socket.SHUT_RDWR)


def _received(one: socket.socket) -> bytes:
    try:
        return one.recv(1 << 20)
    except OSError:
        return b""


def _call(data: bytes) -> tuple[str, int] | None:
    """The method of a call, and the number of partitions that it names."""
    protocol = TBinaryProtocol(TMemoryBuffer(data))
    try:
        name, _, _ = protocol.readMessageBegin()
        arguments = getattr(ThriftHiveMetastore, f"{name}_args")()
        arguments.read(protocol)
    except (EOFError, IndexError):
        return None  # there is more to come
    return name, len(_partitions(arguments))


def _partitions(arguments: Any) -> Sequence[object]:
    """What a call says of each partition that it names."""
    if names := getattr(arguments, "names", None):
        return list(names)
    if added := getattr(arguments, "request", None):
        return list(added.parts)
    if dropped := getattr(arguments, "req", None):
        return list(dropped.parts.names)
    return list(getattr(arguments, "new_parts", None) or ())
