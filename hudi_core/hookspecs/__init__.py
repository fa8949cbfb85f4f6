"""The contract between writer and table format (RFC-93), as hooks.

**Complete.** Every action of a table becomes complete in two steps: the completed file is put on
the Hudi timeline (step 1), then the format records the instant in its own metadata (step 2: a
``complete_*`` hook). An instant is complete when both have happened, and the format's *current
lineage* (not its log of everything that ever was) is what counts. What only step 1 has reached is
*pending publication*: no fenced reader sees it, and the next writer calls the hook again.

**A plugin** is a class that derives from :class:`TableFormat`, behind an entry point of the group
``hudi.table_formats``. It is made without arguments, once for each open table, and lives as long as
that: what it holds of the table it gives back in ``close``. A method may leave out arguments that
it does not need; for type checkers it then ends in ``**_: Any``. Hooks are called by the names of
their arguments.

**Versions.** ``spi_version`` says for which contract a plugin is written; the one of a release is
:data:`SPI_VERSION`. A later minor contract adds hooks, arguments and abilities, all of which a
plugin may ignore: hooks have defaults, arguments may be left out, abilities are strings. A plugin
of a later minor contract is loaded with a warning, and works for what is known here; one of a later
major contract is refused. A plugin of the major contract before is called as it was, with a warning
that says what to change.

**What every hook may rely on**, unless its own text says otherwise:

* ``meta_client`` is the open table. Its timeline is the Hudi timeline without a fence.
  ``view_manager`` gives file slices; by default those of the fenced timeline, so what the format
  names now.
* ``instant`` carries both times as 17 digits, UTC, milliseconds. Paths are relative to the base
  path.
* Metadata values are frozen, and belong to everybody: their mappings must not be changed.
* "Lock" means the table's lock, held by the caller. A lease may run out under its holder, so the
  lock alone is no fence: what a hook changes it changes by compare-and-set.
* ``expected_version``, which every changing hook gets, is the version of the state on which the
  caller has decided that the change be made: what ``open`` returned under the lock. For a write it
  is recorded in the commit before step 1, so that a replay compares with the same state.
  The hook makes its change on that state or raises ``CommitConflictError``; where it finds its work
  done, or the instant held, it returns, whatever the state. ``None``: the caller has decided on no
  state (it fences an instant off in whatever state there is, or the write is of an engine that
  knows nothing of the format), and the hook compares and sets on the one that it reads itself.
  Automatic retry of the format's library is off.

**What every hook owes**, unless its own text says otherwise:

* A ``complete_*`` hook records ``hudi.instant``, ``hudi.action``, ``hudi.operation`` and
  ``hudi.completion-time``, also when the action changed nothing: otherwise it never becomes
  complete.
* It is idempotent by requested time and action. It first looks whether the lineage holds the
  instant, and then returns the receipt that was due, with the location: recovery replays hooks, and
  a lost answer is not a failure.
* It returns a :class:`~hudi_core.model.format.FormatCommit`; ``None`` is a breach of contract.
* It raises when it has not recorded the instant: ``CommitConflictError`` when another writer was
  first, ``ForeignCommitError`` when that was one who knows nothing of Hudi,
  ``IncompleteCommitError`` when it *never* will, because the instant was taken out of the lineage
  or the catalog refuses it, ``CommitStateUnknownError`` when the outcome is open and it may be
  recorded *yet*. After *any* error the caller asks ``find_publication``, and calls the hook again
  where that is of use; no error is believed to mean that nothing has happened.

**What hooks return** (factories and what they make, locks, strategies) is called in the same way:
errors of the project pass to the caller as they are; any other becomes a ``PluginHookError``, once.
A result of another kind than the contract says is a ``PluginContractError``; so is a listing
without a partition that was asked for, and one without any file of a partition in which, by the
table's own metadata, a complete write has left rows.
"""

from hudi_core.hookspecs.marks import PROJECT, Hook, hookimpl
from hudi_core.hookspecs.table_format import HOOKS, TableFormat
from hudi_core.hookspecs.version import SPI_VERSION

__all__ = ["HOOKS", "PROJECT", "SPI_VERSION", "Hook", "TableFormat", "hookimpl"]
