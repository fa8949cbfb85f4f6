"""Parquet files whose lists have two levels, as writers by way of Avro make them.

Arrow writes lists of three levels. Where their elements are required, the same pages are right for
two, and only the footer says otherwise.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TType
from thrift.transport.TTransport import TMemoryBuffer

from hudi_core.schema.arrow_types import children, is_list, with_children

_MAGIC = b"PAR1"
_REPEATED = 2
# numbers of fields in Parquet's Thrift structures
_SCHEMA, _ROW_GROUPS, _REPETITION, _NAME, _COLUMNS, _META, _PATH = 2, 4, 3, 4, 1, 3, 3
_PLAIN = {
    TType.BOOL: "Bool",
    TType.BYTE: "Byte",
    TType.I16: "I16",
    TType.I32: "I32",
    TType.I64: "I64",
    TType.DOUBLE: "Double",
    TType.STRING: "Binary",
}

Value = tuple[int, Any]
"""A kind of Thrift's, and a value: a list of values for a list, such by number for a structure."""


def required_elements(field: pa.Field) -> pa.Field:
    """A field whose lists hold no nulls."""
    below = [required_elements(one) for _, one in children(field.type)]
    if not below:
        return field
    if is_list(field.type):
        below = [below[0].with_nullable(False)]
    return field.with_type(with_children(field.type, below))


def with_old_lists(file: bytes) -> bytes:
    """A Parquet file with lists of two levels, from one whose lists have required elements."""
    length = int.from_bytes(file[-8:-4], "little")
    read = TCompactProtocol(TMemoryBuffer(file[-8 - length : -8]))
    footer = (TType.STRUCT, _read(read, TType.STRUCT))
    elements = footer[1][_SCHEMA][1]
    kept = []
    for at, (kind, element) in enumerate(elements):
        if element[_NAME][1] == b"list":
            continue
        if at and elements[at - 1][1][_NAME][1] == b"list":
            element[_NAME] = (TType.STRING, b"array")
            element[_REPETITION] = (TType.I32, _REPEATED)
        kept.append((kind, element))
    elements[:] = kept
    for _, group in footer[1][_ROW_GROUPS][1]:
        for _, chunk in group[_COLUMNS][1]:
            path = chunk[_META][1][_PATH][1]
            path[:] = _shorter(path)
    buffer = TMemoryBuffer()
    _write(TCompactProtocol(buffer), footer)
    made: bytes = buffer.getvalue()
    return file[: -8 - length] + made + len(made).to_bytes(4, "little") + _MAGIC


def _shorter(path: list[Value]) -> list[Value]:
    found: list[Value] = []
    for at, one in enumerate(path):
        if one[1] != b"list":
            is_element = at > 0 and path[at - 1][1] == b"list"
            found.append((TType.STRING, b"array") if is_element else one)
    return found


def _read(protocol: Any, kind: int) -> Any:
    if kind == TType.STRUCT:
        fields = {}
        protocol.readStructBegin()
        while True:
            _, of, number = protocol.readFieldBegin()
            if of == TType.STOP:
                break
            fields[number] = (of, _read(protocol, of))
            protocol.readFieldEnd()
        protocol.readStructEnd()
        return fields
    if kind == TType.LIST:
        of, size = protocol.readListBegin()
        found = [(of, _read(protocol, of)) for _ in range(size)]
        protocol.readListEnd()
        return found
    return getattr(protocol, f"read{_PLAIN[kind]}")()


def _write(protocol: Any, value: Value) -> None:
    kind, content = value
    if kind == TType.STRUCT:
        protocol.writeStructBegin("")
        for number, one in content.items():
            protocol.writeFieldBegin("", one[0], number)
            _write(protocol, one)
            protocol.writeFieldEnd()
        protocol.writeFieldStop()
        protocol.writeStructEnd()
    elif kind == TType.LIST:
        of = content[0][0] if content else TType.BYTE
        protocol.writeListBegin(of, len(content))
        for one in content:
            _write(protocol, one)
        protocol.writeListEnd()
    else:
        getattr(protocol, f"write{_PLAIN[kind]}")(content)
