"""Rollbacks, restores and savepoints that the table's format refuses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hudi_core.errors import TableServiceError
from hudi_core.model.instant import Instant
from hudi_core.table_handle import OpenTable


@contextmanager
def asking_format(table: OpenTable, plan: Instant, *, is_new: bool) -> Iterator[None]:
    """A format's hook that may refuse a plan, or a savepoint.

    A format that refuses has changed nothing. What stayed on the timeline would be given to it
    again, and refused again, by every later write.

    Parameters
    ----------
    table
        Under its lock.
    plan
        The action; nothing of it has been done yet if it is new.
    is_new
        Whether this very call made the plan; it is removed then. One of another writer, who may
        have deleted files, stays.

    Raises
    ------
    TableServiceError
        The format refuses. For another writer's plan it says how the table becomes writable again.
    """
    try:
        yield
    except TableServiceError as refused:
        if is_new:
            table.client.active.delete_pending(plan)
            raise
        what, name = f"{plan.action.value} {plan.requested_time}", table.host.name
        raise TableServiceError(
            f"The {name} format refuses the {what} of another writer: {refused.what}",
            f"No write can go on before it. `hudi table repair {table.client.base_path} --force` "
            f"finishes it from the Hudi timeline alone, and rebuilds the {name} metadata.",
            instant=plan.requested_time,
        ) from refused
