"""A write's schema change, checked against concurrent writers.

Ids of columns are given out before the lock is taken, so that two writers may give out the same
one; and a writer that knows an older schema would bring it back. Under the lock it is seen whether
the schema is still the one the write was planned with. Hudi 1.1 gives up incompatible writes in the
same way (``hoodie.write.concurrency.schema.conflict.resolution.enable``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from hudi_core.config.stored_keys import ManagedKeys
from hudi_core.config.stored_table import id_properties
from hudi_core.config.table import TableConfig
from hudi_core.errors import CommitConflictError, UnsupportedCapabilityError
from hudi_core.model.capability import Capability
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.schema.arrow_types import children
from hudi_core.schema.casting import promotion
from hudi_core.schema.table_schema import TableSchema
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.state import TableState


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """The schema before a write and after it.

    ``base`` and ``new`` are one value where the write changes no column. ``last_write`` is the
    completion time of the last write that ``base`` counts; ``None`` for an empty table.
    """

    base: TableSchema
    new: TableSchema
    last_write: InstantTime | None

    @property
    def changes(self) -> bool:
        """Whether the write changes the schema."""
        return self.base != self.new

    def names_given_up(self) -> frozenset[str]:
        """Paths that no longer mean the same field."""
        return self.base.given_up_in(self.new)

    def needs(self) -> Mapping[Capability, Sequence[str]]:
        """Capabilities and columns that the change requires of the format."""
        both = list(self._both())
        before, after = self.base.fields_by_id, self.new.fields_by_id
        reported: dict[Capability, list[str]] = {
            Capability.ADD_COLUMN: [after[one][0] for one in after.keys() - before.keys()],
            Capability.DROP_COLUMN: [before[one][0] for one in before.keys() - after.keys()],
            Capability.RENAME_COLUMN: [path for path, old, new in both if old.name != new.name],
            Capability.PROMOTE_TYPE: [path for path, _, _ in self.promoted()],
        }
        return {capability: sorted(paths) for capability, paths in reported.items() if paths}

    def promoted(self) -> Sequence[tuple[str, pa.DataType, pa.DataType]]:
        """Paths of promoted columns, with types before and after."""
        return [
            (path, old.type, new.type)
            for path, old, new in self._both()
            if old.type != new.type and not children(new.type)
        ]

    def _both(self) -> Iterator[tuple[str, pa.Field, pa.Field]]:
        """Yield fields present before and after, by former path."""
        before, after = self.base.fields_by_id, self.new.fields_by_id
        for number in sorted(before.keys() & after.keys()):
            yield before[number][0], before[number][1], after[number][1]


def require_supported(table: OpenTable, step: SchemaStep) -> None:
    """Refuse a change of columns that the table's format cannot hold."""
    if not step.changes:
        return
    host = table.host
    able = host.capabilities
    for path, old, new in step.promoted():
        found = promotion(old, new)
        if found is None or not able.can_promote(found.name):
            _raise_unsupported_change(table, Capability.PROMOTE_TYPE, f"{path}, {old} to {new}")
    for capability, columns in step.needs().items():
        if capability not in able:
            _raise_unsupported_change(table, capability, ", ".join(columns))
    host.check_schema(table.client.config, step.new, step.base)


def _raise_unsupported_change(table: OpenTable, capability: Capability, columns: str) -> NoReturn:
    reason = table.host.capabilities.reasons.get(capability, "")
    raise UnsupportedCapabilityError(table.host.name, f"{capability.words} ({columns})", reason)


def last_write(timeline: TimelineView) -> InstantTime | None:
    """Return when the last write of a timeline was completed."""
    times = (instant.effective_completion_time for instant in timeline.completed_writes())
    return max(times, default=None)


def commit_schema(
    state: TableState, planned: TableConfig, step: SchemaStep, now: TimelineView
) -> TableState:
    """Check the schema and store its new ids; under the lock.

    Ids are kept before the commit is visible: one that is lost with it is never given out again.

    ``planned`` are the properties that the write was planned with; ``now`` is the timeline, read
    under the lock. Ids that another writer has given since are a conflict, too.
    """
    client = state.client
    latest = step.base if last_write(now) == step.last_write else client.schema_at(now)
    if latest not in (step.base, step.new):
        _refuse()
    wanted = dict(id_properties(step.new.field_ids(), step.new.last_column_id))
    if wanted == dict(id_properties(planned.field_ids, planned.last_column_id)):
        return state
    properties = client.config.raw
    if ManagedKeys.last_column_id.read(properties) != planned.last_column_id and latest != step.new:
        _refuse()
    former = {*ManagedKeys.former_names.read(properties), *step.names_given_up()}
    if former:
        wanted[ManagedKeys.former_names.key] = ",".join(sorted(former))
    return state.with_properties(update_properties(client.storage, wanted))


def _refuse() -> None:
    raise CommitConflictError(
        "Another writer changed the columns of the table while this write was under way",
        "Nothing of this write is visible; run it again on the new columns.",
    )
