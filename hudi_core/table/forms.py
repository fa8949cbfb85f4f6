"""Changes of columns, indexes, format, storage layout and version."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hudi_core.config.resolve import options_as_strings
from hudi_core.config.write import WriteConfig
from hudi_core.engine.choice import chosen_engine
from hudi_core.metadata.partitions.asked import asked_partition
from hudi_core.metadata.partitions.names import full_name
from hudi_core.model.instant import Instant
from hudi_core.model.result import CommitResult
from hudi_core.services.alter import alter_table, schema_change
from hudi_core.services.convert import Conversion, convert_table, plan_conversion, without_format
from hudi_core.services.metadata import MetadataOperator
from hudi_core.services.opening import open_table
from hudi_core.services.relocate import (
    StorageConversion,
    convert_storage,
    plan_storage_conversion,
    without_placement,
)
from hudi_core.services.upgrade import upgrade_table
from hudi_core.services.upgrade_plan import CHANGED_OPTIONS, Upgrade, plan_upgrade
from hudi_core.sync.after_commit import require_syncable
from hudi_core.table.session import TableCall, TableSession
from hudi_core.txn.table_lock import table_lock


def alter(call: TableCall, *change: Any) -> CommitResult:
    """Change the columns, as :func:`~hudi_core.services.alter.schema_change` is given it."""
    session, merged = call.session, call.merged
    opened, config = open_table(session.path, merged), WriteConfig.from_options(merged)
    config = replace(config, extras=config.extras.given(call.extras.extra_metadata, None))
    require_syncable(opened, merged)
    lock, wanted = table_lock(opened, config), schema_change(*change)
    result = alter_table(opened, lock, config, wanted)
    session.opened = open_table(session.path, merged)
    return session.synced(result)


def create_index(
    session: TableSession,
    name: str,
    column: str | Sequence[str],
    using: str | None,
    options: Mapping[str, str] | None,
) -> Instant:
    """Add an index of a column, or of a function of it."""
    given = dict(options or {})
    columns = [column] if isinstance(column, str) else list(column)
    keys = session.opened.client.config.record_key_fields
    asked = asked_partition(name, columns, using, keys, has_options=bool(given))
    return _indexed(session, lambda operator: operator.index(*asked, given))


def drop_index(session: TableSession, name: str, *, cascades: bool) -> Instant:
    """Drop an index, by its user's name or Hudi's."""
    stored = session.opened.client.as_stored().config.metadata_partitions
    names = (name, full_name(name, is_of_function=True), full_name(name, is_of_function=False))
    found = next((one for one in names if one in stored), name)
    return _indexed(session, lambda operator: operator.drop(found, cascades=cascades))


def _indexed(session: TableSession, change: Callable[[MetadataOperator], Instant]) -> Instant:
    done = change(MetadataOperator(*session.locked()))
    session.reopen()
    return done


# What the table says itself from now on, its options say no more.


def convert(call: TableCall, to: str | Sequence[str]) -> Conversion:
    """Change the format."""
    merged, wanted = call.merged, to if isinstance(to, str) else ",".join(to)
    run = plan_conversion if call.dry_run else convert_table
    done = run(call.session.path, merged, wanted, call.progress)
    return call.changed(done, without_format(merged))


def move_files(call: TableCall) -> StorageConversion:
    """Move the data files to the layout of the options."""
    wanted, merged, path = options_as_strings(call.options), call.merged, call.session.path
    if call.dry_run:
        return plan_storage_conversion(path, merged, wanted)
    done = convert_storage(path, merged, wanted, chosen_engine(call.engine), call.progress)
    return call.changed(done, without_placement(merged))


def upgrade(call: TableCall, to: int) -> Upgrade:
    """Change the version."""
    merged, path = call.merged, call.session.path
    if call.dry_run:
        return plan_upgrade(path, merged, to)
    done = upgrade_table(path, merged, to, call.progress)
    return call.changed(
        done, {name: merged[name] for name in merged if name not in CHANGED_OPTIONS}
    )
