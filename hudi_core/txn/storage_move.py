"""The step at which a table's data files are at other places.

All of them are at both when it is taken. A format that names files by their places gets the new
ones, and then the table's properties. A crash in between leaves a table whose readers know
both, see :attr:`~hudi_core.storage.data_files.DataFiles.coming`; the next writer takes the step.
"""

from __future__ import annotations

from dataclasses import replace

from hudi_core.config.format_option import LOCATION, option_key
from hudi_core.config.placement import Placement
from hudi_core.config.storage_move import (
    MOVE_PROPERTY,
    MovePhase,
    StorageMove,
    placement_changes,
)
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.capability import Capability
from hudi_core.model.client import HeldMetadata
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.several import JointCommit
from hudi_core.storage.properties_file import update_properties
from hudi_core.table_handle import OpenTable
from hudi_core.txn.publication import is_two_step
from hudi_core.txn.state import TableState


def placed(client: TableMetaClient, host: FormatHost, placement: Placement) -> TableMetaClient:
    """A table's client with its data files at other places."""
    raw = dict(client.config.raw)
    for name, text in _changes(client, host, placement).items():
        if text is None:
            raw.pop(name, None)
        else:
            raw[name] = text
    config = replace(client.config, placement=placement, storage_move=None, raw=raw)
    return replace(client, config=config, held=None, metadata=None)


def _changes(
    client: TableMetaClient, host: FormatHost, placement: Placement
) -> dict[str, str | None]:
    """The changes of properties that give a table another placement."""
    changes = placement_changes(client.config.placement, placement)
    changes[MOVE_PROPERTY] = None
    if Capability.SHARED_STORAGE_PATH not in host.capabilities:
        for part in host.parts:
            changes[option_key(part.name, LOCATION)] = None  # below the storage path
    return changes


def begin_step(state: TableState) -> TableState:
    """Say that the format's metadata may name the files at either place."""
    move = state.client.config.storage_move
    if move is None or not is_two_step(state.table):
        return state
    stated = StorageMove(MovePhase.PUBLISHING, move.other)
    return state.with_properties(
        update_properties(state.client.storage, {MOVE_PROPERTY: stated.text})
    )


def take_step(state: TableState) -> TableState:
    """Make the places that files were copied to the table's.

    Runs under the lock, with all files at both.

    When it raises, the table is where it was.
    """
    client, host = state.client, state.table.host
    move = client.config.storage_move
    if move is None:
        return state
    changes = _changes(client, host, move.other)
    if is_two_step(state.table):
        there = placed(client, host, move.other)
        receipt = host.rebuild(there)
        each = receipt.each if isinstance(receipt, JointCommit) else {host.name: receipt}
        for name, one in each.items():
            if option_key(name, LOCATION) in changes:
                changes[option_key(name, LOCATION)] = one.location
    changes[MOVE_PROPERTY] = StorageMove(MovePhase.DELETING, client.config.placement).text
    update_properties(client.storage, changes)
    held = None if client.held is None else HeldMetadata()
    return TableState.load(state.table, state.timeline, held)


def continue_move(state: TableState) -> TableState:
    """Take the step that a dead mover was about to take."""
    move = state.client.config.storage_move
    if move is None or move.phase is not MovePhase.PUBLISHING:
        return state
    return take_step(state)


def moved_on(table: OpenTable) -> OpenTable:
    """The table under its lock, with that step taken."""
    move = table.client.config.storage_move
    if move is None or move.phase is not MovePhase.PUBLISHING:
        return table
    return take_step(TableState.load(table)).table.afresh
