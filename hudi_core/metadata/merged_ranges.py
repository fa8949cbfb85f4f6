"""Ranges of partitions from those of their files; pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hudi_core.avro.wrappers import Wrapped
from hudi_core.metadata.bound_forms import (
    BoundForm,
    bound_order,
    covers,
    has_values,
    in_form,
    is_in_form,
)
from hudi_core.metadata.doubtful_ranges import may_be_narrow
from hudi_core.metadata.records import ColumnRange

_COUNTS: Final = ("value_count", "null_count", "total_size", "total_uncompressed_size")


def merged_range(ranges: Iterable[ColumnRange | None], form: BoundForm) -> ColumnRange | None:
    """The range of a column in several files.

    ``None`` where no file has the column.

    ``ranges`` has ``None`` for each file without the column. ``form`` is the current one; files may
    have an older.
    """
    parts = [in_form(one, form) for one in ranges if one is not None]
    if not parts:
        return None
    if len(parts) == 1:  # of most partitions that one commit touches
        return parts[0] if parts[0].is_tight_bound else replace(parts[0], is_tight_bound=True)
    return _around(parts, {name: _sum(parts, name) for name in _COUNTS})


def updated_range(
    stored: ColumnRange, gone: Sequence[ColumnRange], came: Sequence[ColumnRange], form: BoundForm
) -> ColumnRange | None:
    """The range of a partition after some of its files were replaced.

    ``None`` where it takes the files that stay: a bound may have gone with its file, or what is
    stored is not exact, of another form, or may be one of those that Hudi's writers make too
    narrow.
    """
    is_usable = stored.is_tight_bound and is_in_form(stored, form)
    if not is_usable or may_be_narrow(stored, form.kind):
        return None
    old, new = ([in_form(one, form) for one in some] for some in (gone, came))
    parts = [stored, *new]
    sums: dict[str, int] = {}
    for name in _COUNTS:
        added, taken = _sum(parts, name), _sum(old, name)
        if added is None or taken is None or added < taken:
            return None
        sums[name] = added - taken
    found = _around(parts, sums)
    is_bounded = found.min_value is not None
    agrees = is_bounded is has_values(found) and sums["null_count"] <= sums["value_count"]
    return found if agrees and _holds(found, old, new) else None


def _holds(found: ColumnRange, old: Sequence[ColumnRange], new: Sequence[ColumnRange]) -> bool:
    """Whether no bound has gone with a replaced file."""
    if not all(covers(found, one) for one in old):
        return False
    for side in ("min_value", "max_value"):
        held, kept = ({_place(one, side) for one in some} for some in (old, new))
        if _place(found, side) in held - kept - {None}:
            return False
    return True


def _place(one: ColumnRange, side: str) -> Any:
    bound: Wrapped | None = getattr(one, side)
    return None if bound is None else bound_order(one)(bound)


def _around(parts: Sequence[ColumnRange], sums: Mapping[str, Any]) -> ColumnRange:
    """The first of some ranges, with the outermost bounds of all."""
    bounded = [one for one in parts if has_values(one)]
    low = high = None
    if bounded:
        order = bound_order(bounded[0])
        low = min((one.min_value for one in bounded if one.min_value is not None), key=order)
        high = max((one.max_value for one in bounded if one.max_value is not None), key=order)
    return replace(parts[0], min_value=low, max_value=high, is_tight_bound=True, **sums)


def _sum(ranges: Sequence[ColumnRange], name: str) -> int | None:
    found = [getattr(one, name) for one in ranges]
    return None if None in found else sum(found)
