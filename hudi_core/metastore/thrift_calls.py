"""Calls of a Hive metastore's Thrift interface.

Structs are declared by the numbers of their fields, as ``hive_metastore.thrift`` of Apache Hive has
them; what is not declared is skipped when it comes. Connections are plain ones: SASL (Kerberos) and
TLS are not spoken here.
"""

from __future__ import annotations

import contextlib
import socket as sockets
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from thrift.protocol.TBase import TBase
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.Thrift import TApplicationException, TException, TMessageType, TType
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport, TTransportException

_MAX_TEXT: Final = 10_000_000
"""Spark keeps whole schemas in the parameters of tables."""
_MAX_ITEMS: Final = 10_000_000

Failures: Final = (TException, OSError, EOFError)
"""What a call may end with."""

BOOL, I16, I32, I64 = TType.BOOL, TType.I16, TType.I32, TType.I64
STRING, STRUCT = TType.STRING, TType.STRUCT
LIST, MAP = TType.LIST, TType.MAP


class Struct(TBase):  # type: ignore[misc]  # thrift has no types
    """A struct; a value that is missing is not sent."""

    thrift_spec: tuple[Any, ...] = ()

    def __init__(self, **values: Any) -> None:
        for field in filter(None, self.thrift_spec):
            setattr(self, field[2], values.get(field[2]))


def struct(name: str, *fields: tuple[int, int, str, Any]) -> type[Struct]:
    """A struct of some fields.

    Each has a number, a type, a name, and what the type is made of.
    """
    numbered = {field[0]: (*field, None) for field in fields}
    spec = tuple(numbered.get(number) for number in range(max(numbered, default=0) + 1))
    return type(name, (Struct,), {"thrift_spec": spec})


def of(inner: type[Struct]) -> list[Any]:
    """What a field of a struct type is made of."""
    return [inner, inner.thrift_spec]  # the compiled codec wants a list


TEXT: Final = "UTF8"
TEXTS: Final = (TType.STRING, TEXT, False)
TEXT_MAP: Final = (TType.STRING, TEXT, TType.STRING, TEXT, False)


def structs(inner: type[Struct]) -> tuple[Any, ...]:
    """What a list of structs is made of."""
    return (TType.STRUCT, of(inner), False)


Error: Final = struct("Error", (1, STRING, "message", TEXT))
"""Whatever a metastore throws."""
Address = tuple[str, int]


def addresses_of(uris: Sequence[str]) -> tuple[Address, ...]:
    """Host and port of each address such as ``thrift://metastore:9083``."""
    parts = [urlsplit(uri) for uri in uris]
    return tuple((part.hostname or "", part.port or 0) for part in parts)


class Connection:
    """One connection to a metastore; one thread uses it at a time."""

    def __init__(self, addresses: Sequence[Address], timeout_s: float) -> None:
        for place, (host, port) in enumerate(addresses, 1):
            self._socket = TSocket(host, port)
            self._socket.setTimeout(timeout_s * 1000)
            self._transport = TBufferedTransport(self._socket)
            try:
                self._transport.open()
            except TTransportException:
                if place == len(addresses):
                    raise
                continue
            return
        raise TTransportException(TTransportException.NOT_OPEN, "no address")

    def close(self) -> None:
        """End the connection."""
        self._transport.close()

    def interrupt(self) -> None:
        """Let the call of another thread fail that waits for an answer."""
        handle = self._socket.handle
        if handle is not None:
            with contextlib.suppress(OSError):
                handle.shutdown(sockets.SHUT_RDWR)

    def call(self, method: str, arguments: Struct, result: type[Struct]) -> Any:
        """Call a method; its result, whatever it is."""
        protocol = TBinaryProtocol(
            self._transport, string_length_limit=_MAX_TEXT, container_length_limit=_MAX_ITEMS
        )
        protocol.writeMessageBegin(method, TMessageType.CALL, 0)
        arguments.write(protocol)
        protocol.writeMessageEnd()
        protocol.trans.flush()
        _, kind, _ = protocol.readMessageBegin()
        if kind == TMessageType.EXCEPTION:
            error = TApplicationException()
            error.read(protocol)
            raise error
        found = result()
        found.read(protocol)
        protocol.readMessageEnd()
        return found
