"""Going back, what must not be deleted, and what is forgotten."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sqlalchemy import Connection, and_, delete, or_, select, update

from hudi_core.spi import (
    WRITE_ACTIONS,
    Action,
    CleanerPlan,
    CommitConflictError,
    FormatCommit,
    Instant,
    InstantInfo,
    MetaClientView,
    RestorePlan,
    State,
    TableServiceError,
    parse_instant_time,
)
from hudi_sql_format.commit import revoke, step
from hudi_sql_format.database import Database
from hudi_sql_format.files import find, remove
from hudi_sql_format.state import TableState, key_of, read_state, row_of
from hudi_sql_format.tables import DELETED, FILES, INSTANTS, TABLES

_WRITES = frozenset(str(one) for one in WRITE_ACTIONS)


def take_back(database: Database, target: Instant, expected: str | None) -> None:
    """Take an instant out of the table before its files are deleted.

    One that the table does not hold is fenced off: a state is made that changes nothing, so that a
    request that is still travelling finds another state than its own. One that is only to be fenced
    off (its state says so) stays as it is where the table holds it.
    """
    state = read_state(database)
    state.require_ours(database)
    if key_of(target) in state.revoked:
        return
    if not state.holds(target):
        state.require_expected(expected)
        step(
            database,
            state.head,
            lambda connection, number: revoke(connection, state.head.id, target, number),
            {},
        )
        return
    if not target.is_completed:
        return
    state.require_expected(expected)
    version = state.versions.get(key_of(target))
    if version is None or version <= state.head.oldest_version:
        raise TableServiceError(
            f"Instant {target.requested_time} is older than what the SQL metadata can go back to",
            "Restore the table from a backup, or delete the rows that are not wanted.",
            instant=target.requested_time,
        )
    with database.reading() as connection:
        if _is_built_upon(connection, state, version):
            raise TableServiceError(
                f"Instant {target.requested_time} cannot be taken out of the table in "
                f"{database.location}: later versions build on it",
                "Roll the later instants back first, the newest at first.",
                instant=target.requested_time,
            )
    _go_back(database, state, version - 1, [target])


def restore(database: Database, plan: RestorePlan, expected: str | None) -> None:
    """Return to the state of a restore's commit.

    No effect where that has happened.

    :class:`TableServiceError`: the state is not kept, or instants in between are to stay.
    """
    state = read_state(database)
    state.require_ours(database)
    held = _held(database, state, plan)
    if not held:
        return
    state.require_expected(expected)
    _go_back(database, state, _base(database, state, plan, held), held)


def require_restorable(database: Database, plan: RestorePlan) -> None:
    """Refuse a restore as :func:`restore` would; changes nothing."""
    state = read_state(database)
    state.require_ours(database)
    held = _held(database, state, plan)
    if held:
        _base(database, state, plan, held)


def _held(database: Database, state: TableState, plan: RestorePlan) -> Sequence[Instant]:
    """The instants of a restore that the table has."""
    undone = [_instant_of(one) for one in plan.instants_to_rollback]
    held = [one for one in undone if state.names(one) and key_of(one) not in state.revoked]
    if any(state.holds(one) and key_of(one) not in state.versions for one in undone):
        raise _forgotten(database, "an instant is older than what it knows by name")
    return held


def _base(database: Database, state: TableState, plan: RestorePlan, held: Sequence[Instant]) -> int:
    """The version of a restore; refuses where it is gone."""
    versions = [state.versions[key_of(one)] for one in held]
    base = _version_of(state, plan.savepoint_to_restore_timestamp)
    if base is None:
        base = min(versions) - 1
    if base < state.head.oldest_version:
        raise _forgotten(database, "files of that state were deleted")
    going = {key_of(one) for one in held}
    for key, number in state.versions.items():
        is_kept = key not in going and key not in state.revoked and key[1] in _WRITES
        if is_kept and number > min(versions):
            raise _forgotten(database, f"{key[0]}, which is to stay, came in between")
    return base


def unsave(database: Database, savepoint: Instant, expected: str | None) -> FormatCommit:
    """Take a savepoint out of the table."""
    state = read_state(database)
    number = state.head.version
    if state.names(savepoint):
        state.require_ours(database)
        state.require_expected(expected)
        gone = delete(INSTANTS).where(row_of(state.head.id, key_of(savepoint)))
        number = step(database, state.head, lambda connection, _: connection.execute(gone), {})
    return FormatCommit(str(number), database.location)


def stop_naming(database: Database, plan: CleanerPlan) -> None:
    """Forget files that a clean is about to delete.

    States with such a file cannot be read any more; no instant is forgotten.
    """
    state = read_state(database)
    state.require_ours(database)
    head, saved = state.head, _saved(state)
    ids, oldest = [], head.oldest_version
    with database.reading() as connection:
        for path in _planned(connection, head.id, plan):
            number, added, removed = find(connection, head.id, path)
            if added is not None and (
                removed is None or any(added <= one < removed for one in saved)
            ):
                raise TableServiceError(
                    f"The clean would delete {path}, which the table in {database.location} names "
                    "now or in a savepoint",
                    "Nothing was deleted. Remove the plan from the timeline; it was not made for "
                    "this state of the table.",
                    path=path,
                )
            if number:
                ids.append(number)
            if added is not None and removed is not None:
                oldest = max(oldest, removed)
    if not ids:
        return
    unchanged = (
        update(TABLES)
        .where(TABLES.c.id == head.id, TABLES.c.version == head.version)
        .values(oldest_version=oldest)
    )
    with database.changing() as connection:
        if connection.execute(unchanged).rowcount != 1:
            raise CommitConflictError(
                f"The table in {database.location} is not at version {head.version} any more",
                "Nothing was deleted. Run the clean again.",
            )
        remove(connection, head.id, ids)


def forget(
    database: Database,
    meta_client: MetaClientView,
    archived: Iterable[Instant],
    expected: str | None,
) -> None:
    """Let the watermark replace archived instants."""
    old = tuple(archived)
    state = read_state(database)
    head, gone = state.head, {one.requested_time for one in old}
    marks = [one.effective_completion_time for one in old]
    mark = max([*marks, *([head.watermark] if head.watermark else [])], default=None)
    if mark is None:
        return
    kept = {one.requested_time for one in meta_client.timeline().instants} - gone
    leaving = [
        key
        for key, one in state.lineage.publications.items()
        if one.requested_time not in kept and (one.completion_time or "") <= mark
    ]
    if mark == head.watermark and not leaving:
        return
    state.require_ours(database)
    state.require_expected(expected)

    def fill(connection: Connection, _: int) -> None:
        for time, action in leaving:
            key = (str(time), str(action))
            connection.execute(delete(INSTANTS).where(row_of(head.id, key)))

    step(database, head, fill, {"completed_watermark": mark})


def _go_back(database: Database, state: TableState, base: int, instants: Sequence[Instant]) -> None:
    """Return to an earlier state, without some instants."""
    head = state.head

    def fill(connection: Connection, number: int) -> None:
        former = connection.execute(
            select(INSTANTS.c.former_columns)
            .where(
                INSTANTS.c.table_id == head.id,
                INSTANTS.c.version > base,
                INSTANTS.c.former_columns.is_not(None),
                INSTANTS.c.is_revoked.is_(False),
            )
            .order_by(INSTANTS.c.version)
            .limit(1)
        ).scalar_one_or_none()
        if former is not None:
            of_id = TABLES.c.id == head.id
            connection.execute(update(TABLES).where(of_id).values(columns=former))
        of_table = FILES.c.table_id == head.id
        came = and_(of_table, FILES.c.added > base)
        connection.execute(update(FILES).where(came).values(added=None, removed=number))
        went = and_(of_table, FILES.c.added <= base, FILES.c.removed > base)
        connection.execute(update(FILES).where(went).values(removed=None))
        died = and_(DELETED.c.table_id == head.id, DELETED.c.deleted > base)
        connection.execute(delete(DELETED).where(died))
        for one in instants:
            revoke(connection, head.id, one, number)

    step(database, head, fill, {})


def _is_built_upon(connection: Connection, state: TableState, version: int) -> bool:
    later = select(FILES.c.id).where(
        FILES.c.table_id == state.head.id,
        FILES.c.added.is_not(None),
        or_(FILES.c.added > version, FILES.c.removed > version),
    )
    changed = select(INSTANTS.c.instant).where(
        INSTANTS.c.table_id == state.head.id,
        INSTANTS.c.version > version,
        INSTANTS.c.former_columns.is_not(None),
        INSTANTS.c.is_revoked.is_(False),
    )
    died = select(DELETED.c.file_id).where(
        DELETED.c.table_id == state.head.id, DELETED.c.deleted > version
    )
    each = (later, changed, died)
    return any(connection.execute(one.limit(1)).first() is not None for one in each)


def _saved(state: TableState) -> list[int]:
    """States that savepoints keep."""
    found = []
    for time, action in state.lineage.publications:
        if action is Action.SAVEPOINT:
            number = _version_of(state, time)
            if number is not None:
                found.append(number)
    return found


def _version_of(state: TableState, time: str | None) -> int | None:
    """The state that a write made."""
    for (one, action), number in state.versions.items():
        if one == time and action in _WRITES and (one, action) not in state.revoked:
            return number
    return None


def _planned(connection: Connection, table_id: int, plan: CleanerPlan) -> Iterator[str]:
    yield from plan.paths()
    for partition in plan.partitions_to_be_deleted or ():
        of_partition = and_(FILES.c.table_id == table_id, FILES.c.partition_path == partition)
        for name in connection.execute(select(FILES.c.name).where(of_partition)).scalars().all():
            yield f"{partition}/{name}" if partition else name


def _instant_of(info: InstantInfo) -> Instant:
    time = parse_instant_time(info.commit_time)
    return Instant(time, Action(info.action).completed_action, State.COMPLETED, time)


def _forgotten(database: Database, why: str) -> TableServiceError:
    return TableServiceError(
        f"The SQL metadata in {database.location} cannot go back behind the instants of the "
        f"restore: {why}",
        "Nothing was deleted. Restore to a later commit.",
    )
