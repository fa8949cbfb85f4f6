"""Predicates and columns of Arrow's own expressions.

Arrow does not show what an expression is made of, but it writes it down to be pickled: columns and
calls as metadata of a schema, in the order in which a tree is walked, and values as the one row of
that schema. Only the part is read that filters are commonly made of; what else there is stays
whole, as :class:`~hudi_core.read.predicate.Anything`.

Substrait's form was tried: with each further call around a column Arrow takes twice as long to
write it, which is three seconds for twenty conditions joined by "or".
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from hudi_core.errors import SchemaError
from hudi_core.read.predicate import (
    MAX_DEPTH,
    MIRRORED,
    Anything,
    Comparison,
    IsNull,
    Predicate,
    all_of,
    any_of,
    exactly,
    is_like,
    not_of,
    one_of,
)

_COMPARISONS: Final = {
    "equal": "=",
    "not_equal": "!=",
    "less": "<",
    "less_equal": "<=",
    "greater": ">",
    "greater_equal": ">=",
}
_BY_NUMBER: Final = "non-name field_refs"
"""What Arrow says of an expression that names a column by its number."""
_NULL_IS_NONE: Final = (0, 1)
"""Ways of ``is_in`` to match nulls by which a null is not among values without nulls."""
_EITHER_DEPTH: Final = 4
_MAX_CALLS: Final = 2_000
"""Arrow recurses into them, also into a chain of "and": with ten thousand its threads have no stack
left, and the process dies."""

Path: TypeAlias = tuple[str, ...]


def predicate_of_expression(expression: pc.Expression, schema: pa.Schema) -> Predicate:
    """Return an expression taken apart."""
    written = written_form(expression)
    return Anything() if written is None else _Reading(schema, written.values).of(written.steps)


def referenced_columns(
    expression: pc.Expression, schema: pa.Schema, among: Collection[str]
) -> frozenset[str]:
    """Those of some columns that an expression depends on."""
    written = written_form(expression)
    if written is not None:
        return frozenset(one.path[0] for one in written.steps if one.path).intersection(among)
    found = set()
    for name in among:
        # without one of its columns it cannot be bound
        without = schema.remove(schema.get_field_index(name))
        try:
            without.empty_table().filter(expression.is_valid())
        except pa.ArrowInvalid:
            found.add(name)
    return frozenset(found)


# --- what Arrow writes ---------------------------------------------------------------------------


class _Step(NamedTuple):
    """A step of the walk: ``call``, ``end``, ``column``, ``literal`` or ``options``.

    ``word`` is which of them; ``text`` is the function's name, or the number of the value; ``path``
    is that of a column.
    """

    word: str
    text: str
    path: Path = ()


class _Written(NamedTuple):
    steps: Sequence[_Step]
    values: pa.RecordBatch


def written_form(expression: pc.Expression) -> _Written | None:
    """What Arrow pickles; ``None`` where it cannot."""
    try:
        _, (buffer,) = expression.__reduce__()
    except pa.ArrowException as error:
        if _BY_NUMBER in str(error):
            raise SchemaError(
                f"The expression {expression} names a column by its number",
                'Name it: pc.field("city").',
                filter=str(expression),
            ) from error
        return None
    with pa.ipc.open_file(buffer) as file:
        steps = list(_steps(_metadata(file.schema)))
        _require_few(steps)
        return _Written(steps, file.get_batch(0))


def _require_few(steps: Sequence[_Step]) -> None:
    calls = sum(step.word == "call" for step in steps)
    if calls > _MAX_CALLS:
        raise SchemaError(
            f"An expression has {calls:,} calls, and {_MAX_CALLS:,} is the most",
            "Ask for one of many values by isin, or filter the rows that come.",
            calls=calls,
        )


def _steps(pairs: Sequence[tuple[str, str]]) -> Iterator[_Step]:
    rest = iter(pairs)
    for word, text in rest:
        if word == "nested_field_ref":
            yield _Step("column", "", tuple(next(rest)[1] for _ in range(int(text))))
        elif word == "field_ref":
            yield _Step("column", "", (text,))
        else:
            yield _Step(word, text)


class _CSchema(ctypes.Structure):
    """The begin of ``ArrowSchema`` in Arrow's C data interface."""

    _fields_ = (
        ("format", ctypes.c_char_p),
        ("name", ctypes.c_char_p),
        ("metadata", ctypes.c_void_p),
    )


def _metadata(schema: pa.Schema) -> list[tuple[str, str]]:
    """The metadata of a schema, with keys that are repeated.

    As C has it: the number of pairs, and of each the size of the key, the key, and the same of the
    value.
    """
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    capsule = schema.__arrow_c_schema__()
    address = _CSchema.from_address(pointer(capsule, b"arrow_schema")).metadata
    size = ctypes.sizeof(ctypes.c_int32)

    def number() -> int:
        nonlocal address
        found = ctypes.c_int32.from_address(address).value
        address += size
        return found

    def text() -> str:
        nonlocal address
        length = number()
        found = ctypes.string_at(address, length)
        address += length
        return found.decode()

    return [(text(), text()) for _ in range(number())] if address else []


# --- what it means -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Part:
    """A column, a literal or a predicate; what is known of it."""

    path: Path = ()
    literal: pa.Scalar | None = None
    predicate: Predicate = field(default_factory=Anything)
    depth: int = 1


@dataclass(slots=True)
class _Call:
    function: str
    arguments: list[_Part] = field(default_factory=list)
    options: pa.StructArray | None = None


@dataclass(frozen=True, slots=True)
class _Reading:
    schema: pa.Schema
    values: pa.RecordBatch

    def of(self, steps: Sequence[_Step]) -> Predicate:
        """The predicate of a walk, made without recursion."""
        calls = [_Call("")]
        for step in steps:
            match step.word:
                case "call":
                    calls.append(_Call(step.text))
                case "end":
                    made = self._made(calls.pop())
                    calls[-1].arguments.append(made)
                case "column":
                    calls[-1].arguments.append(self._column(step.path))
                case "literal":
                    value = self.values.column(int(step.text))[0]
                    calls[-1].arguments.append(_Part(literal=value))
                case "options":
                    calls[-1].options = self.values.column(int(step.text))
                case _:
                    return Anything()
        [found] = calls[0].arguments
        return found.predicate

    def _column(self, path: Path) -> _Part:
        kind = self._kind(path)
        if kind is not None and pt.is_boolean(kind):
            return _Part(path, predicate=Comparison(".".join(path), "=", pa.scalar(True)))
        return _Part(path)

    def _kind(self, path: Path) -> pa.DataType | None:
        """The type of a column; ``None`` without one."""
        fields: Any = self.schema
        for name in path:
            place = fields.get_field_index(name)
            if place < 0:
                return None
            found = fields.field(place).type
            fields = found if pt.is_struct(found) else pa.struct([])
        return found if path else None

    def _made(self, call: _Call) -> _Part:
        found = self._of_call(call)
        # of a chain of one kind there is one predicate
        inner = [one.depth - (type(one.predicate) is type(found)) for one in call.arguments]
        depth = max(inner, default=0) + (_EITHER_DEPTH if call.function == "if_else" else 1)
        return _Part(predicate=found, depth=depth) if depth <= MAX_DEPTH else _Part()

    def _of_call(self, call: _Call) -> Predicate:
        predicates = [one.predicate for one in call.arguments]
        match call.function, call.arguments:
            case "and_kleene", [_, _]:
                found = all_of(*predicates)
            case "or_kleene", [_, _]:
                found = any_of(*predicates)
            case "invert", [_]:
                found = not_of(*predicates)
            case "if_else", [_, _, other]:
                found = _either(*predicates, is_null=_is_null(other.literal))
            case "is_in", [one]:
                found = self._one_of(one, call)
            case "is_valid" | "is_null" as name, [one]:
                found = self._is_null(one, call)
                found = not_of(found) if name == "is_valid" else found
            case name, [left, right] if name in _COMPARISONS:
                found = self._compared(left, _COMPARISONS[name], right)
            case _:
                found = Anything()
        return found

    def _is_null(self, one: _Part, call: _Call) -> Predicate:
        if self._kind(one.path) is None or _option(call, "nan_is_null"):
            return Anything()
        return IsNull(".".join(one.path))

    def _compared(self, left: _Part, op: str, right: _Part) -> Predicate:
        if not left.path:
            left, op, right = right, MIRRORED[op], left
        kind = self._kind(left.path)
        if kind is None or right.literal is None:
            return Anything()
        value = exactly(right.literal, kind)
        return Anything() if value is None else Comparison(".".join(left.path), op, value)

    def _one_of(self, one: _Part, call: _Call) -> Predicate:
        kind = self._kind(one.path)
        if kind is None or _option(call, "null_matching_behavior") not in _NULL_IS_NONE:
            return Anything()
        listed = _option(call, "value_set")
        given = getattr(listed, "values", None)
        if given is None or not len(given) or given.null_count or not is_like(given.type, kind):
            return Anything()
        try:
            values = given.cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return Anything()
        found = one_of(".".join(one.path), values)
        # to Arrow 0.0 and -0.0 are two values, where a list has but one of them
        return found if len(found.values) == len(values) else all_of(found, Anything())


def _option(call: _Call, name: str) -> Any:
    """An option of a call: a list's scalar, else a value."""
    if call.options is None or call.options.type.get_field_index(name) < 0:
        return None
    found = call.options.field(name)[0]
    return found if pt.is_list(found.type) else found.as_py()


def _is_null(literal: pa.Scalar | None) -> bool:
    return literal is not None and not literal.is_valid


def _either(where: Predicate, then: Predicate, other: Predicate, *, is_null: bool) -> Predicate:
    """What a choice accepts at most.

    DuckDB makes one of its ``IN``, which is null where the column is.
    """
    found = all_of(where, then)
    if not is_null:
        found = any_of(found, all_of(not_of(where), other))
    return all_of(found, Anything())
