"""Compatibility of files' Avro schemas with their decoder.

A file's schema decides how its bytes are read, and anybody may have written it: a size that is a
string, or a list that is none, is found here, once per schema, and not where it is used.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from hudi_core.avro import ParsedSchema, parse_writer_schema
from hudi_core.avro.columns import named_types
from hudi_core.metadata.record_schema import record_schema

_PROMOTIONS: Final = {("int", "long"), ("float", "double"), ("int", "double"), ("long", "double")}
_DEFAULTED: Final = frozenset({"isTightBound", "fileIdEncoding"})
"""Fields that are not null and that older files may lack."""

_Named = Mapping[str, Any]


@lru_cache(maxsize=64)
def schema_incompatibility(schema: str) -> str | None:
    """The difference of a file's schema from the expected one.

    ``None`` when there is none.

    It may lack fields that can be null, and have further fields, and further kinds of records in
    its unions.
    """
    found = parse_writer_schema(schema, "").parsed
    expected = parse_writer_schema(record_schema(), "").parsed
    return _Comparison(found, expected).record(found, expected)


class _Comparison:
    """Compares two schemas, whose names differ."""

    def __init__(self, found: ParsedSchema, expected: ParsedSchema) -> None:
        self._found: _Named = named_types(found)
        self._expected: _Named = named_types(expected)

    def record(self, found: Mapping[str, Any], expected: Mapping[str, Any]) -> str | None:
        kinds = {field["name"]: field["type"] for field in found["fields"]}
        for field in expected["fields"]:
            name, wanted = field["name"], field["type"]
            if name in kinds:
                if not self._fits(kinds[name], wanted):
                    return f"{_short(found)}.{name}"
            elif not isinstance(wanted, list) and name not in _DEFAULTED:
                return f"{_short(found)}.{name}"
        return None

    def _fits(self, found: Any, expected: Any) -> bool:
        found = self._found.get(found, found) if isinstance(found, str) else found
        expected = self._expected.get(expected, expected) if isinstance(expected, str) else expected
        if isinstance(found, list):
            return all(self._fits(branch, expected) for branch in found)
        if isinstance(expected, list):
            return any(self._fits(found, branch) for branch in expected) or self._is_new(
                found, expected
            )
        return self._one_fits(found, expected)

    def _one_fits(self, found: Any, expected: Any) -> bool:
        if isinstance(found, str) or isinstance(expected, str):
            # the pair is compared whole: a structure in it equals no name
            return found == expected or any(pair == (found, expected) for pair in _PROMOTIONS)
        if found["type"] != expected["type"]:
            return False
        if found["type"] == "record":
            same_name = _short(found) == _short(expected)
            return same_name and self.record(found, expected) is None
        inner = "items" if found["type"] == "array" else "values"
        return self._fits(found[inner], expected[inner])

    def _is_new(self, found: Any, expected: list[Any]) -> bool:
        """Whether a union has a record kind of later releases."""
        if not isinstance(found, dict) or found["type"] != "record":
            return False
        known = [
            self._expected.get(branch, branch) if isinstance(branch, str) else branch
            for branch in expected
        ]
        names = {_short(kind) for kind in known if isinstance(kind, dict) and "name" in kind}
        return len(names) > 1 and _short(found) not in names


def _short(record: Mapping[str, Any]) -> str:
    return str(record["name"]).rpartition(".")[2]
