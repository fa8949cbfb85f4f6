"""Type promotions that keep every stored value, for all formats.

Files that were written before the change stay as they are, and every reader turns their values into
the new type. A change is *exact* when no value is lost by that and all readers turn it into the
same one; only exact changes are made. The others are listed because Hudi, or another format, allows
them. Whatever is not listed is refused. One reservation: Hudi's own readers widen a float by way of
its shortest text (0.1 becomes 0.1, not 0.10000000149011612); here the number stays what it is, as
everywhere else.

*On write*: rows that bring the wider type change the column by themselves; other changes have to be
asked for. Hudi makes all of its changes on write, so that one batch of strings or of numbers that a
tool turned into doubles would retype a column of integers for good. Rows make those *by option*
too where ``hoodie.write.schema.widen.numbers`` says so. Some of these are not exact: whole numbers
become the nearest floating-point number, and such numbers are spelled as Java does
(:mod:`hudi_core.schema.widening`), with digits that depend on its release.

A table format declares which of them it can hold, by their names
(:attr:`~hudi_core.model.capability.FormatCapabilities.promotions`).

Source: Hudi's ``SchemaChangeUtils`` and its rules for schema evolution on write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.types as pt

BY_OPTION: Final = "hoodie.write.schema.widen.numbers"
"""The option that lets rows make further changes."""
_Test = Callable[[pa.DataType], bool]


@dataclass(frozen=True, slots=True)
class Promotion:
    """One row of the table.

    ``source`` and ``target`` are words. ``exact``: every value stays the same for all readers.
    ``hudi``: Hudi allows it. ``on_write``: rows of the wider type make the change by themselves;
    ``by_option``: they make or may request it where an option allows it.
    """

    source: str
    target: str
    fits: Callable[[pa.DataType, pa.DataType], bool]
    exact: bool = True
    hudi: bool = True
    on_write: bool = False
    by_option: bool = False

    @property
    def name(self) -> str:
        """What it is called by, such as ``int to long``."""
        return f"{self.source} to {self.target}"


def _pair(source: _Test, target: _Test) -> Callable[[pa.DataType, pa.DataType], bool]:
    return lambda stored, wanted: bool(source(stored) and target(wanted))


def _digits(kind: pa.DataType) -> int:
    """Return a decimal's digits before the point; -1 otherwise."""
    return int(kind.precision - kind.scale) if pt.is_decimal(kind) else -1


def _holds_digits(count: int) -> _Test:
    return lambda kind: _digits(kind) >= count


def _any_of(*tests: _Test) -> _Test:
    return lambda kind: any(test(kind) for test in tests)


def _is_local(kind: pa.DataType) -> bool:
    return bool(pt.is_timestamp(kind) and kind.tz is None)


def _more_precise(stored: pa.DataType, wanted: pa.DataType) -> bool:
    both = pt.is_decimal(stored) and pt.is_decimal(wanted)
    return bool(both and stored.scale == wanted.scale and stored.precision < wanted.precision)


def _finer(stored: pa.DataType, wanted: pa.DataType) -> bool:
    both = pt.is_decimal(stored) and pt.is_decimal(wanted)
    return bool(both and stored.scale < wanted.scale and _digits(stored) <= _digits(wanted))


_INT, _LONG, _FLOAT, _DOUBLE = pt.is_int32, pt.is_int64, pt.is_float32, pt.is_float64

PROMOTIONS: Final = (
    Promotion("int", "long", _pair(_INT, _LONG), on_write=True),
    Promotion("int", "double", _pair(_INT, _DOUBLE), by_option=True),
    Promotion("int", "decimal, 10 digits before the point", _pair(_INT, _holds_digits(10))),
    Promotion("int", "float", _pair(_INT, _FLOAT), exact=False, by_option=True),
    Promotion("int, long", "string", _pair(_any_of(_INT, _LONG), pt.is_string), by_option=True),
    Promotion("long", "decimal, 20 digits before the point", _pair(_LONG, _holds_digits(20))),
    Promotion(
        "long",
        "float, double",
        _pair(_LONG, _any_of(_FLOAT, _DOUBLE)),
        exact=False,
        by_option=True,
    ),
    Promotion("float", "double", _pair(_FLOAT, _DOUBLE), on_write=True),
    Promotion(
        "float, double",
        "string",
        _pair(_any_of(_FLOAT, _DOUBLE), pt.is_string),
        exact=False,
        by_option=True,
    ),
    Promotion(
        "float, double",
        "decimal",
        _pair(_any_of(_FLOAT, _DOUBLE), pt.is_decimal),
        exact=False,
    ),
    Promotion("decimal", "decimal of more digits", _more_precise, on_write=True),
    Promotion(
        "decimal",
        "decimal of more digits behind the point, no fewer before",
        _finer,
        on_write=True,
    ),
    Promotion("decimal", "string", _pair(pt.is_decimal, pt.is_string), exact=False),
    Promotion("date", "string", _pair(pt.is_date32, pt.is_string)),
    Promotion(
        "date",
        "timestamp without zone",
        _pair(pt.is_date32, _is_local),
        hudi=False,
    ),
    Promotion("string", "binary", _pair(pt.is_string, pt.is_binary)),
    Promotion(
        "string",
        "date, decimal",
        _pair(pt.is_string, _any_of(pt.is_date32, pt.is_decimal)),
        exact=False,
    ),
)


def promotion(stored: pa.DataType, wanted: pa.DataType) -> Promotion | None:
    """Return the table row of a type promotion, if any."""
    return next((each for each in PROMOTIONS if each.fits(stored, wanted)), None)


def can_promote(
    stored: pa.DataType, wanted: pa.DataType, *, on_write: bool = False, widely: bool = False
) -> bool:
    """Return whether a Hudi table may make this change of type.

    Types must be normalised. ``on_write``: by rows of the wider type, not on demand; ``widely``: an
    option allows more.
    """
    found = promotion(stored, wanted)
    if found is None or not found.hudi:
        return False
    if widely and found.by_option:
        return True
    return found.exact and (found.on_write or not on_write)


def way_out(stored: pa.DataType, wanted: pa.DataType) -> str:
    """The option that allows a refused change, for its error; else empty."""
    found = promotion(stored, wanted)
    return f", or set {BY_OPTION}=true" if found is not None and found.by_option else ""
