"""Structs of Thrift interfaces, and calls of a Hive metastore's.

Structs are declared as the ``.thrift`` file of an interface has them; what is not declared is
skipped when it comes. Connections are plain ones: SASL (Kerberos) and TLS are not spoken here.
"""

from __future__ import annotations

import contextlib
import re
import socket as sockets
from collections.abc import Mapping, Sequence
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

_SIMPLE: Final[Mapping[str, tuple[int, Any]]] = {
    "bool": (TType.BOOL, None),
    "i16": (TType.I16, None),
    "i32": (TType.I32, None),
    "i64": (TType.I64, None),
    "double": (TType.DOUBLE, None),
    "string": (TType.STRING, "UTF8"),
    "binary": (TType.STRING, "BINARY"),
}
_MANY: Final = {"list": TType.LIST, "set": TType.SET}
_FIELD: Final = re.compile(r"(\d+): (\S+) (\w+)")


class Struct(TBase):  # type: ignore[misc]  # thrift has no types
    """A struct; a value that is missing is not sent."""

    thrift_spec: tuple[Any, ...] = ()

    def __init__(self, **values: Any) -> None:
        for field in filter(None, self.thrift_spec):
            setattr(self, field[2], values.get(field[2]))


class Interface:
    """The structs of one interface, each declared after those that it has.

    Every interface has the struct ``Error``, for whatever a metastore throws.
    """

    def __init__(self) -> None:
        self._structs: dict[str, type[Struct]] = {}
        self.struct("Error", "1: string message")

    def struct(self, name: str, fields: str = "") -> type[Struct]:
        """A struct of fields such as ``1: string name, 3: list<Column> columns``."""
        numbered = {
            int(number): (int(number), kind, field, made, None)
            for number, text, field in _FIELD.findall(fields)
            for kind, made in (self._type(text),)
        }
        spec = tuple(numbered.get(number) for number in range(max(numbered, default=0) + 1))
        made = self._structs[name] = type(name, (Struct,), {"thrift_spec": spec})
        return made

    def request(self, method: str, arguments: Mapping[str, object]) -> Struct:
        """The arguments of a method, by names such as ``string db_name``."""
        fields = ", ".join(f"{number}: {one}" for number, one in enumerate(arguments, 1))
        values = {one.rpartition(" ")[2]: value for one, value in arguments.items()}
        return self.struct(f"{method}_args", fields)(**values)

    def answer(self, method: str, success: str | None, errors: int = 0) -> type[Struct]:
        """The result of a method: ``success``, or an error of ``o1``, ``o2``..."""
        thrown = "".join(f", {number}: Error o{number}" for number in range(1, errors + 1))
        return self.struct(f"{method}_result", f"0: {success or 'bool'} success{thrown}")

    def _type(self, text: str) -> tuple[int, Any]:
        """A type, and what it is made of."""
        if text in _SIMPLE:
            return _SIMPLE[text]
        outer, _, inner = text.removesuffix(">").partition("<")
        if outer in _MANY:
            return _MANY[outer], (*self._type(inner), False)
        if outer == "map":
            key, _, value = inner.partition(",")
            return TType.MAP, (*self._type(key), *self._type(value), False)
        found = self._structs[text]
        return TType.STRUCT, [found, found.thrift_spec]  # the compiled codec wants a list


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
