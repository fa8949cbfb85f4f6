"""Predicates and columns of Arrow's own expressions.

Arrow does not show what an expression is made of, but it writes it in Substrait's form: a protobuf
message (``substrait/extended_expression.proto``, ``substrait/algebra.proto``). Only the part is
read that filters are commonly made of; what else there is stays whole, as
:class:`~hudi_core.read.predicate.Anything`.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.protobuf import Message
from hudi_core.read.predicate import (
    MIRRORED,
    And,
    Anything,
    Comparison,
    IsNull,
    Not,
    OneOf,
    Or,
    Predicate,
)
from hudi_core.schema.arrow_types import children, with_children

# numbers of fields
_EXTENSIONS, _REFERRED = 2, 3
_FUNCTION, _ANCHOR, _NAME = 3, 2, 3
_LITERAL, _SELECTION, _CALL, _IN_LIST = 1, 2, 3, 8
_CALLED, _ARGUMENTS, _ARGUMENT_VALUE = 1, 4, 3
_DIRECT, _ROOT, _STRUCT_FIELD, _CHILD = 1, 4, 2, 2

_COMPARISONS: Final = {
    "equal": "=",
    "not_equal": "!=",
    "lt": "<",
    "lte": "<=",
    "gt": ">",
    "gte": ">=",
}
_NUMBERS: Final = {1: pa.bool_(), 2: pa.int8(), 3: pa.int16(), 5: pa.int32(), 7: pa.int64()}
_FLOATS: Final = {10: ("<f", pa.float32()), 11: ("<d", pa.float64())}
_CONTENTS: Final = {12: pa.string(), 13: pa.binary(), 21: pa.string(), 23: pa.binary()}
_TIMESTAMPS: Final = {
    14: pa.timestamp("us"),
    16: pa.date32(),
    17: pa.time64("us"),
    27: pa.timestamp("us", "UTC"),
}
_VAR_CHAR, _DECIMAL, _PRECISE, _PRECISE_ZONED = 22, 24, 34, 35
_UNITS: Final = {0: "s", 3: "ms", 6: "us", 9: "ns"}
_DECIMAL_BYTES: Final = 16


def predicate_of_expression(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    """Return an expression taken apart.

    Parameters
    ----------
    expression
        Evaluates to true or false on rows of ``schema``.
    schema
        Columns of the rows.
    """
    try:
        data = bytes(expression.to_substrait(pa.schema(map(_bare, schema))))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ImportError):
        return Anything()
    message = Message(data)
    functions: dict[int, str] = {}
    for one in message.messages(_EXTENSIONS):
        for declared in one.messages(_FUNCTION):
            functions[declared.number(_ANCHOR)] = declared.text(_NAME)
    referred = message.messages(_REFERRED)
    inner = referred[0].messages(1) if len(referred) == 1 else ()
    return _Reading(functions, schema).predicate(inner[0]) if len(inner) == 1 else Anything()


def referenced_columns(
    expression: pc.Expression, schema: pa.Schema, among: Collection[str]
) -> frozenset[str]:
    """Those of some columns that an expression depends on.

    An expression does not tell its columns, but it cannot be bound to a schema without one of them.

    Parameters
    ----------
    expression
        An expression that fits ``schema``.
    schema
        Schema of the rows.
    among
        Names of the columns in question.
    """
    found = set()
    for name in among:
        without = schema.remove(schema.get_field_index(name))
        try:
            _bind(expression, without)
        except pa.ArrowInvalid:
            found.add(name)
    return frozenset(found)


def _bind(expression: pc.Expression, schema: pa.Schema) -> None:
    """Bind an expression to a schema; ``ArrowInvalid`` without its columns."""
    try:
        # what it returns is not wanted: it runs nothing
        expression.to_substrait(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, ImportError):
        # a column is missing, or Substrait has no word for something
        schema.empty_table().filter(expression)


def _bare(field: pa.Field) -> pa.Field:
    """Return a field without metadata, which Substrait structs lack."""
    below = children(field.type)
    kind = with_children(field.type, [_bare(child) for _, child in below]) if below else field.type
    return pa.field(field.name, kind, field.nullable)


class _Reading:
    def __init__(self, functions: Mapping[int, str], schema: pa.Schema) -> None:
        self._functions, self._schema = functions, schema

    def predicate(self, message: Message) -> Predicate:
        kind = message.only()
        if kind == _CALL:
            return self._call(message.messages(_CALL)[0])
        if kind == _SELECTION:
            found = self._column(message)
            if found is not None and pt.is_boolean(found[1]):
                return Comparison(found[0], "=", pa.scalar(True))
        elif kind == _IN_LIST:
            return self._in_list(message.messages(_IN_LIST)[0])
        return Anything()

    def _call(self, call: Message) -> Predicate:
        name = self._functions.get(call.number(_CALLED), "").partition(":")[0]
        arguments = [
            value
            for argument in call.messages(_ARGUMENTS)
            for value in argument.messages(_ARGUMENT_VALUE)
        ]
        if name in ("and", "or"):
            parts = tuple(map(self.predicate, arguments))
            return And(parts) if name == "and" else Or(parts)
        if name == "not" and len(arguments) == 1:
            return Not(self.predicate(arguments[0]))
        if name in ("is_null", "is_not_null") and len(arguments) == 1:
            found = self._column(arguments[0])
            if found is not None:
                return IsNull(found[0]) if name == "is_null" else Not(IsNull(found[0]))
        if name in _COMPARISONS and len(arguments) == 2:
            return self._comparison(_COMPARISONS[name], arguments)
        return Anything()

    def _comparison(self, op: str, sides: Sequence[Message]) -> Predicate:
        column, value = sides
        if self._column(column) is None:
            op, column, value = MIRRORED[op], value, column
        found = self._column(column)
        if found is None:
            return Anything()
        literal = _literal_of(value, found[1])
        return Anything() if literal is None else Comparison(found[0], op, literal)

    def _in_list(self, message: Message) -> Predicate:
        values = message.messages(1)
        found = self._column(values[0]) if len(values) == 1 else None
        if found is None:
            return Anything()
        options = message.messages(2)
        # a scalar may be false, and then counts as nothing unless it is compared with None
        given = [_literal_of(option, found[1]) for option in options]
        known = [one.as_py() for one in given if one is not None]
        if not known or len(known) < len(options):
            return Anything()
        return OneOf(found[0], pa.array(known, found[1]))

    def _column(self, message: Message) -> tuple[str, pa.DataType] | None:
        """Return an expression's column path and type, or ``None``."""
        if message.only() != _SELECTION:
            return None
        selection = message.messages(_SELECTION)[0]
        if selection.numbers() != {_DIRECT, _ROOT}:
            return None
        fields: Any = self._schema
        names: list[str] = []
        segments = selection.messages(_DIRECT)
        while segments:
            if len(segments) != 1 or segments[0].only() != _STRUCT_FIELD:
                return None
            step = segments[0].messages(_STRUCT_FIELD)[0]
            place = step.number(1)
            count = len(fields) if isinstance(fields, pa.Schema) else fields.num_fields
            if not 0 <= place < count:
                return None
            field = fields.field(place)
            names.append(field.name)
            fields = field.type
            segments = step.messages(_CHILD)
            if segments and not pt.is_struct(fields):
                return None
        return (".".join(names), fields) if names else None


def _literal_of(message: Message, kind: pa.DataType) -> pa.Scalar | None:
    """Return a literal in its column's type, or ``None``."""
    if message.only() != _LITERAL:
        return None
    found = _literal(message.messages(_LITERAL)[0])
    if found is None or not found.is_valid:
        return None
    try:
        value = found.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    return None if pt.is_floating(kind) and value.as_py() != value.as_py() else value


def _literal(literal: Message) -> pa.Scalar | None:
    # beside the value a literal says whether its type may be null, and a variation of its type
    numbers = literal.numbers() - {50, 51}
    if len(numbers) != 1:
        return None
    number = next(iter(numbers))
    if number in _NUMBERS:
        return pa.scalar(literal.number(number), pa.int64()).cast(_NUMBERS[number])
    if number in _TIMESTAMPS:
        return pa.scalar(literal.number(number), _TIMESTAMPS[number])
    if number in _FLOATS:
        form, kind = _FLOATS[number]
        return pa.scalar(struct.unpack(form, literal.content(number))[0], kind)
    if number in _CONTENTS:
        return pa.scalar(literal.content(number), pa.binary()).cast(_CONTENTS[number])
    return _structured(number, Message(literal.content(number)))


def _structured(number: int, inner: Message) -> pa.Scalar | None:
    """Return a literal whose content is a message of its own."""
    if number == _VAR_CHAR:
        return pa.scalar(inner.content(1), pa.binary()).cast(pa.string())
    if number == _DECIMAL and len(inner.content(1)) == _DECIMAL_BYTES:
        kind = pa.decimal128(inner.number(2), inner.number(3))
        data = pa.py_buffer(inner.content(1))
        return pa.Array.from_buffers(kind, 1, [None, data])[0]
    if number in (_PRECISE, _PRECISE_ZONED) and inner.number(1) in _UNITS:
        zone = "UTC" if number == _PRECISE_ZONED else None
        return pa.scalar(inner.number(2), pa.timestamp(_UNITS[inner.number(1)], zone))
    return None
