"""Record keys that a filter asks for.

A filter names keys by the meta column, or by values of all record key fields. Only values with one
spelling are made into keys: strings and integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from hudi_core.config.key_generators import KEY_GENERATORS
from hudi_core.config.table import TableConfig
from hudi_core.errors import InvalidOptionError, RecordKeyError
from hudi_core.keygen import key_generator
from hudi_core.metadata.key_groups import MAX_KEYS
from hudi_core.read.predicate import And, Comparison, OneOf, Or, Predicate
from hudi_core.schema.table_schema import RECORD_KEY, TableSchema

Values = frozenset[Any]
Keys = frozenset[str]


class KeyFilter:
    """Finds the record keys in filters of one table."""

    def __init__(self, config: TableConfig, schema: TableSchema) -> None:
        self._config, self._schema = config, schema
        self._fields = config.record_key_fields if self._has_plain_fields() else ()

    def _has_plain_fields(self) -> bool:
        """Whether the keys follow from the values of the fields."""
        config = self._config
        if config.keygen_type not in KEY_GENERATORS:
            return False
        kinds = [self._kind(name) for name in config.record_key_fields]
        return all(
            kind is not None and (pt.is_string(kind) or pt.is_integer(kind)) for kind in kinds
        )

    def _kind(self, name: str) -> pa.DataType | None:
        # a name that stood for another column may be in keys with that column's values
        if name in self._config.former_names or name not in self._schema.names:
            return None
        return self._schema.arrow.field(name).type

    def keys(self, predicate: Predicate) -> Keys | None:
        """Keys of all rows that a predicate can accept, if known."""
        match predicate:
            case Comparison() | OneOf():
                return self._of_values({predicate.column: values_of(predicate)})
            case And(parts):
                return self._of_all(parts)
            case Or(parts):
                each = [self.keys(part) for part in parts]
                known = [found for found in each if found is not None]
                return Keys().union(*known) if len(known) == len(each) else None
        return None

    def _of_all(self, parts: Sequence[Predicate]) -> Keys | None:
        columns: dict[str, Values | None] = {}
        found: list[Keys] = []
        for part in flattened(parts):
            if isinstance(part, Comparison | OneOf):
                values, known = values_of(part), columns.get(part.column)
                both = known & values if known is not None and values is not None else None
                columns[part.column] = both if both is not None else known or values
            elif (keys := self.keys(part)) is not None:
                found.append(keys)
        if (made := self._of_values(columns)) is not None:
            found.append(made)
        return min(found, key=len, default=None)

    def _of_values(self, columns: Mapping[str, Values | None]) -> Keys | None:
        stated = columns.get(RECORD_KEY)
        if stated is not None:
            return Keys(stated)
        values = [columns.get(name) for name in self._fields]
        known = [one for one in values if one is not None]
        if not known or len(known) < len(values) or prod(map(len, known)) > MAX_KEYS:
            return None
        return self._made(list(product(*known)))

    def _made(self, rows: Sequence[tuple[Any, ...]]) -> Keys | None:
        kinds = {name: self._schema.arrow.field(name).type for name in self._fields}
        columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
        batch = pa.RecordBatch.from_arrays(
            [pa.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)],
            names=list(kinds),
        )
        # writers of one table may have differed in what a key of one field is
        forms = (False, True) if self._config.may_name_one_key else (None,)
        keys: set[str] = set()
        for form in forms:
            config = self._config
            if form is not None:
                config = replace(config, complex_keygen_new_encoding=form)
            try:
                made = key_generator(config, self._schema, knows_partitions=False)
                keys.update(made.record_keys(batch).to_pylist())
            except (InvalidOptionError, RecordKeyError):
                return None  # no row has such a key, or keys are not made here
        return Keys(keys)


def values_of(predicate: Comparison | OneOf) -> Values | None:
    """Values of which a column has one where a predicate holds."""
    if isinstance(predicate, OneOf):
        return Values(predicate.values.to_pylist())
    return Values([predicate.value.as_py()]) if predicate.op == "=" else None


def flattened(parts: Sequence[Predicate]) -> Iterator[Predicate]:
    """Yield what all have to hold, without further :class:`And` among them."""
    for part in parts:
        if isinstance(part, And):
            yield from flattened(part.parts)
        else:
            yield part
