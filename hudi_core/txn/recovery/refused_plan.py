"""Rollbacks, restores and savepoints that the table's format refuses."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from hudi_core.errors import ForeignCommitError, TableServiceError
from hudi_core.model.instant import Instant
from hudi_core.table_handle import OpenTable

_log: Final = logging.getLogger(__name__)


@dataclass
class FormatAnswer:
    """What a format said of another writer's plan."""

    is_refused: bool = False


@contextmanager
def asking_format(
    table: OpenTable, plan: Instant, *, is_new: bool, is_begun: bool = True
) -> Iterator[FormatAnswer]:
    """A format's hook that may refuse a plan, or a savepoint.

    A format that refuses has changed nothing. What stayed on the timeline would be given to it
    again, and refused again, by every later write.

    Runs under the table's lock. With ``is_new`` this call made the plan, of which nothing has been
    done; it is removed and the error raised. With ``is_begun`` another writer may have deleted
    files already, and its plan stays; otherwise the plan is removed with a warning in the log, and
    without an error.
    """
    answer = FormatAnswer()
    try:
        yield answer
    except ForeignCommitError:
        # every writer is refused until it is taken in or out; another's plan waits for that
        if is_new:
            table.client.active.delete_pending(plan)
        raise
    except TableServiceError as refused:
        if is_new:
            table.client.active.delete_pending(plan)
            raise
        what, name = f"{plan.action.value} {plan.requested_time}", table.host.name
        if not is_begun:
            _log.warning(
                "%s: the %s format refuses the %s of a writer that died; its plan is dropped: %s",
                table.client.base_path,
                name,
                what,
                refused.what,
            )
            table.client.active.delete_pending(plan)
            answer.is_refused = True
            return
        raise TableServiceError(
            f"The {name} format refuses the {what} of another writer: {refused.what}",
            f"No write can go on before it. `hudi table repair {table.client.base_path} --force` "
            f"finishes it from the Hudi timeline alone, and rebuilds the {name} metadata.",
            instant=plan.requested_time,
        ) from refused
