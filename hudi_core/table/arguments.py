"""Arguments that many methods of a table take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from hudi_core.model.instant_time import InstantTime, parse_instant_time
from hudi_core.read.query_times import QueryTime, requested_time
from hudi_core.write.validation import Validator

Options = Mapping[str, object]
"""Hudi options: strings, numbers, booleans, lists of names."""
Columns = str | Sequence[str]
"""Names of columns; a string is one name."""


class Extras(NamedTuple):
    """Further arguments of every operation on rows; see :class:`Table`."""

    extra_metadata: Mapping[str, str] | None = None
    idempotency: tuple[str, int] | None = None
    validators: Sequence[Validator] = ()


NO_EXTRAS: Final = Extras()


def commit_time(instant: QueryTime | None) -> InstantTime | None:
    """Requested time of a commit that a user names."""
    text = requested_time(instant)
    return None if text is None else parse_instant_time(text)


def names_of(columns: Columns | None) -> Sequence[str] | None:
    """Names of columns that a user gives, one of them or several."""
    return [columns] if isinstance(columns, str) else columns
