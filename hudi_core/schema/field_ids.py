"""Field ids: numbers that survive renames and are never reused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from hudi_core.errors import SchemaError
from hudi_core.schema.arrow_types import FIELD_ID, children, field_id, walk, with_children


class FieldIds:
    """Assigns field ids: the one present, the remembered, or a new one.

    ``remembered`` are ids by path from the table's properties, those of dropped columns included;
    ``last`` is the greatest id ever given.
    """

    def __init__(self, remembered: Mapping[str, int], last: int) -> None:
        self._remembered = dict(remembered)
        self._used: set[int] = set()
        self.last = max([last, *remembered.values()])

    def reserve(self, fields: Sequence[pa.Field]) -> None:
        """Reserve existing ids, before any new one is assigned."""
        for path, field in walk(fields):
            known = self._known(path, field)
            if known is None:
                continue
            if known in self._used:
                raise SchemaError(
                    f"Column {path} has the field id {known} of another column",
                    "Restore hoodie.properties from a backup of the table.",
                    column=path,
                    field_id=known,
                )
            self._used.add(known)
            self.last = max(self.last, known)

    def reserve_first(self, fields: Sequence[pa.Field]) -> None:
        """Assign ids 1, 2, ... to fields without, if these are free."""
        wanted = range(1, len(fields) + 1)
        known = [self._known(path, field) for path, field in walk(fields)]
        if all(each is None for each in known) and self._used.isdisjoint(wanted):
            taken = set(self._remembered.values())
            if taken.isdisjoint(wanted):
                self._remembered.update(zip([field.name for field in fields], wanted, strict=True))
                self._used.update(wanted)
                self.last = max(self.last, len(fields))

    def assign(self, field: pa.Field, path: str) -> pa.Field:
        """Return a field with ids on it and on everything below it."""
        known = self._known(path, field)
        if known is None:
            self.last += 1
            known = self.last
        kind = field.type
        below = children(kind)
        if below:
            kind = with_children(
                kind, [self.assign(child, f"{path}.{suffix}") for suffix, child in below]
            )
        metadata = {**(field.metadata or {}), FIELD_ID: str(known).encode()}
        return pa.field(field.name, kind, field.nullable, metadata)

    def _known(self, path: str, field: pa.Field) -> int | None:
        carried = field_id(field)
        return self._remembered.get(path) if carried is None else carried
