"""From the schema a write builds on to the one it leaves, and no writer between them.

Ids of columns are given out before the lock is taken, so that two writers may give out the same
one; and a writer that knows an older schema would bring it back. Under the lock it is seen whether
the schema is still the one the write was planned with. Hudi 1.1 gives up incompatible writes in the
same way (``hoodie.write.concurrency.schema.conflict.resolution.enable``).
"""

from __future__ import annotations

from dataclasses import dataclass

from hudi_core.config.stored_form import id_properties
from hudi_core.config.stored_keys import FORMER_NAMES, LAST_COLUMN_ID
from hudi_core.errors import CommitConflictError
from hudi_core.model.arrow_types import children, field_id, walk
from hudi_core.model.capability import Capability
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import TimelineView
from hudi_core.model.schema import TableSchema
from hudi_core.storage.properties_file import read_properties, update_properties
from hudi_core.txn.open_table import OpenTable


@dataclass(frozen=True, slots=True)
class SchemaStep:
    """The schema before a write and after it.

    Attributes
    ----------
    base, new
        The two; one value where the write changes no column.
    last_write
        Completion time of the last write that ``base`` counts; ``None`` for an empty table.
    """

    base: TableSchema
    new: TableSchema
    last_write: InstantTime | None

    @property
    def changes(self) -> bool:
        """Whether the write changes the schema."""
        return self.base != self.new

    def names_given_up(self) -> frozenset[str]:
        """Return the paths that do not stand for the same field any more."""
        after = self.new.field_ids()
        return frozenset(
            path for path, number in self.base.field_ids().items() if after.get(path) != number
        )

    def needs(self) -> tuple[Capability, ...]:
        """Return what the change needs of the table's format."""
        before = {field_id(each): (path, each) for path, each in walk(self.base.arrow)}
        after = {field_id(each): (path, each) for path, each in walk(self.new.arrow)}
        both = [(before[number], after[number]) for number in before.keys() & after.keys()]
        told = {
            Capability.ADD_COLUMN: after.keys() - before.keys(),
            Capability.DROP_COLUMN: before.keys() - after.keys(),
            Capability.RENAME_COLUMN: [new for (_, old), (_, new) in both if old.name != new.name],
            Capability.PROMOTE_TYPE: [
                new
                for (_, old), (_, new) in both
                if old.type != new.type and not children(new.type)
            ],
        }
        return tuple(capability for capability, found in told.items() if found)


def last_write(timeline: TimelineView) -> InstantTime | None:
    """Return when the last write of a timeline was completed."""
    times = (instant.effective_completion_time for instant in timeline.completed_writes())
    return max(times, default=None)


def settle(table: OpenTable, step: SchemaStep, now: TimelineView) -> None:
    """Make sure of the schema, and keep the ids it gave out; runs under the table's lock.

    Ids are kept before the commit is visible: one that is lost with it is never given out again.

    Parameters
    ----------
    now
        The timeline as it is, read under the lock.

    Raises
    ------
    CommitConflictError
        Another writer changed the schema, or gave out ids, since this write was planned.
    """
    client = table.client
    latest = step.base if last_write(now) == step.last_write else client.schema_at(now)
    if latest not in (step.base, step.new):
        _refuse()
    config = client.config
    wanted = dict(id_properties(step.new.field_ids(), step.new.last_column_id))
    if wanted == dict(id_properties(config.field_ids, config.last_column_id)):
        return
    properties = read_properties(client.storage)
    if LAST_COLUMN_ID.read(properties) != config.last_column_id and latest != step.new:
        _refuse()
    former = {*FORMER_NAMES.read(properties), *step.names_given_up()}
    if former:
        wanted[FORMER_NAMES.key] = ",".join(sorted(former))
    update_properties(client.storage, wanted)


def _refuse() -> None:
    raise CommitConflictError(
        "Another writer changed the columns of the table while this write was under way",
        "Nothing of this write is visible; run it again on the new columns.",
    )
