"""Several formats of one table, as one format.

The protocol, the services and the readers know one format. Of a table with several this class is
it: it passes each hook on to every format, in the order in which the table names them, and makes
one answer of theirs. So there is no second protocol, and what one format owes, all of them owe.

* **Complete** is what every format holds. A commit travels from the first format to the last, and
  what is taken out of them (a rollback, a restore, a savepoint that is deleted) from the last to
  the first. So the last format holds what is complete and nothing else; the others may be ahead of
  it by the one instant that is on its way.
* **Pending** is what one of them lacks. Recovery replays the hook; a format that holds the instant
  says so, and the next one gets it, by a compare-and-set on its own parent. The parents of a commit
  are recorded together, under the lock. An instant that one format holds and another lacks is
  brought to its end before anything else: no check of another write would see it.
* **Given up** is an instant once every format that lacks it is fenced against it. Where all hold it
  by then, it stays; else it is taken out of those that hold it, before a file is deleted.
* **Files** are listed from the table's own metadata, which has those of either state.
* **Abilities** are those that all have.

Each format sees a table of its own: its name in the settings, its own options, and its own place
for what it reads under the lock. :mod:`tests.model.two_formats` takes every step of two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

from hudi_core.errors import IncompleteCommitError, TableServiceError
from hudi_core.hookspecs import HOOKS, Hook, TableFormat
from hudi_core.meta_client import TableMetaClient
from hudi_core.metadata.lister import table_lister
from hudi_core.model.actions import RestorePlan
from hudi_core.model.capability import Capability, FormatCapabilities
from hudi_core.model.client import HeldMetadata, MetaClientView, TableSettings
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.file_index import FileIndex
from hudi_core.model.format import (
    ConflictResolutionStrategy,
    FormatCommit,
    Granularity,
    MetadataFactory,
    Publication,
    Registration,
    TimelineFactory,
)
from hudi_core.model.instant import Instant
from hudi_core.model.protocols import LockProvider, TimelineView
from hudi_core.plugin.fenced import fence
from hudi_core.plugin.hook_methods import HookMethods
from hudi_core.schema.table_schema import TableSchema
from hudi_core.timeline.timeline import Timeline

# --- versions, receipts and abilities of several formats together ---------------------------------


_LEFT_OUT: Final = frozenset(
    {
        Capability.STORAGE_PATH,
        Capability.SEVERAL_STORAGE_PATHS,
        Capability.SHARED_STORAGE_PATH,
    }
)
_IN_ITS_FOLDER: Final = "a table of several formats keeps all files in its folder"


@dataclass(frozen=True, slots=True)
class JointCommit(FormatCommit):
    """The receipts of several formats as one.

    ``each`` is in the order of the table's formats. ``version`` and ``details`` name all of them;
    there is no one ``location``.
    """

    each: Mapping[str, FormatCommit] = field(default_factory=dict)

    @classmethod
    def of(cls, each: Mapping[str, FormatCommit]) -> JointCommit:
        """Return the receipts as one."""
        version = join_versions({name: one.version for name, one in each.items()})
        details = {
            f"{name}.{key}": text for name, one in each.items() for key, text in one.details.items()
        }
        return cls(version, None, details, each)


def join_versions(versions: Mapping[str, str]) -> str:
    """One string of the versions of several formats, as ``name=version,...``."""
    return ",".join(f"{name}={quote(version, safe='')}" for name, version in versions.items())


def split_versions(text: str | None) -> dict[str, str]:
    """The versions in such a string, by format; none in any other."""
    parts = (one.partition("=") for one in (text or "").split(","))
    return {name: unquote(version) for name, sign, version in parts if sign and name and version}


def joint_capabilities(each: Mapping[str, FormatCapabilities]) -> FormatCapabilities:
    """The abilities that every one of several formats declares."""
    declared = frozenset.intersection(*(one.declared for one in each.values())) - _LEFT_OUT
    named = [one.promotions for one in each.values() if one.promotions is not None]
    reasons = {
        str(missing): "; ".join(
            f"the {name} format lacks it" + (f": {why}" if why else "")
            for name, one in each.items()
            if missing not in one
            for why in (one.reasons.get(missing, ""),)
        )
        for missing in Capability
        if missing not in declared
    }
    reasons |= dict.fromkeys(map(str, _LEFT_OUT), _IN_ITS_FOLDER)
    promotions = frozenset.intersection(*named) if named else None
    return FormatCapabilities(declared, promotions, reasons)


# --- several formats as one -----------------------------------------------------------------------


Answer = TypeVar("Answer")


class SeveralFormats(TableFormat):
    """The formats of a table with several, behind one host.

    ``hosts`` are in the order of the table. A hook that answers nothing, or a receipt, and is not
    defined here is that of every format, one after the other.
    """

    spi_version = "1.0"

    def __init__(self, hosts: Mapping[str, HookMethods]) -> None:
        self.hosts = hosts

    # --- the ways in which hooks are called ------------------------------------------------------

    def _each(
        self, meta_client: MetaClientView, ask: Callable[[HookMethods, TableMetaClient], Answer]
    ) -> dict[str, Answer]:
        return {
            name: ask(host, self._client(meta_client, name)) for name, host in self.hosts.items()
        }

    def _in_turn(
        self,
        hook: str,
        meta_client: MetaClientView,
        given: Mapping[str, Any],
        *,
        last_first: bool = False,
    ) -> dict[str, Any]:
        """Call a hook of all, each with its own expected version."""
        answers = {}
        for name in reversed(tuple(self.hosts)) if last_first else tuple(self.hosts):
            call = getattr(self.hosts[name], hook)
            answers[name] = call(**self._arguments(name, meta_client, given))
        return {name: answers[name] for name in self.hosts}

    def _taken_back(
        self,
        hook: str,
        meta_client: MetaClientView,
        plan: RestorePlan,
        given: Mapping[str, Any],
    ) -> None:
        """Call the last format first, after all have checked the plan."""
        self._in_turn("check_restore", meta_client, {"restore_plan": plan}, last_first=True)
        done: list[str] = []
        for name in reversed(tuple(self.hosts)):
            try:
                getattr(self.hosts[name], hook)(**self._arguments(name, meta_client, given))
            except TableServiceError as refused:
                if not done:
                    raise
                raise IncompleteCommitError(
                    f"The {name} format refuses what the {' and '.join(done)} format has done "
                    f"already: {refused.what}",
                    "No file was deleted. `hudi table repair --force` finishes it from the Hudi "
                    "timeline alone, and rebuilds the metadata of all formats.",
                    instant=given["instant"].requested_time,
                ) from refused
            done.append(name)

    def _arguments(
        self, name: str, meta_client: MetaClientView, given: Mapping[str, Any]
    ) -> dict[str, Any]:
        """The arguments of a hook for one format, without the views."""
        own = {key: value for key, value in given.items() if key != "view_manager"}
        if "expected_version" in own:
            own["expected_version"] = split_versions(own["expected_version"]).get(name)
        return {**own, "meta_client": self._client(meta_client, name)}

    @staticmethod
    def _client(meta_client: MetaClientView, name: str) -> TableMetaClient:
        """The client of the table as one of a single format."""
        if not isinstance(meta_client, TableMetaClient):
            raise TypeError(f"a table of several formats needs a TableMetaClient: {meta_client!r}")
        config = replace(meta_client.config, table_format=name)
        return meta_client.as_format(config, _place(meta_client.held, name))

    # --- what they can do ------------------------------------------------------------------------

    def get_capabilities(self) -> FormatCapabilities:
        """What every one of them declares."""
        each = {name: host.calls.capabilities for name, host in self.hosts.items()}
        return joint_capabilities(each)

    def check_schema(
        self, *, settings: TableSettings, schema: TableSchema, before: TableSchema | None
    ) -> None:
        """Ask all of them, before anything is written."""
        for host in self.hosts.values():
            host.check_schema(settings, schema, before)

    # --- their metadata --------------------------------------------------------------------------

    def close(self) -> None:
        """Close all of them, also where one fails."""
        with ExitStack() as closing:
            for host in self.hosts.values():
                closing.callback(host.calls.close)

    def find_publication(
        self, *, meta_client: MetaClientView, instant: Instant
    ) -> Publication | None:
        """How all of them hold an instant; ``None`` where one does not."""
        found: dict[str, Publication] = {}
        for name, host in self.hosts.items():
            held = host.find_publication(self._client(meta_client, name), instant)
            if held is None:
                return None
            found[name] = held
        times = (one.completion_time for one in found.values() if one.completion_time is not None)
        return Publication(
            instant.requested_time,
            instant.action.completed_action,
            join_versions({name: one.version for name, one in found.items()}),
            next(times, None),
            is_expired=any(one.is_expired for one in found.values()),
        )

    def holders(self, meta_client: MetaClientView, instant: Instant) -> tuple[str, ...]:
        """Names of the formats that hold an instant."""
        found = self._each(meta_client, lambda host, client: host.find_publication(client, instant))
        return tuple(name for name, held in found.items() if held is not None)

    def get_timeline_factory(self) -> TimelineFactory:
        """What all of them hold."""
        factories = {name: host.get_timeline_factory() for name, host in self.hosts.items()}
        return JointTimelineFactory(factories, self._client)

    def get_metadata_factory(self) -> MetadataFactory:
        """The files, by the table's own metadata."""
        return UnitedListing()

    def get_metadata_folders(self, *, meta_client: MetaClientView) -> tuple[str, ...]:
        """The folders of all."""
        found = self._each(meta_client, lambda host, client: host.get_metadata_folders(client))
        return tuple(dict.fromkeys(folder for each in found.values() for folder in each))

    def get_registration(self, *, meta_client: MetaClientView) -> Registration | None:
        """How metastores know it: as the first format that says so."""
        for name, host in self.hosts.items():
            found = host.get_registration(self._client(meta_client, name))
            if found is not None:
                return found
        return None

    def get_lock_provider(
        self, *, meta_client: MetaClientView, lock_options: Mapping[str, str]
    ) -> LockProvider | None:
        """The first lock that is offered and excludes other processes."""
        offered = (
            host.get_lock_provider(self._client(meta_client, name), lock_options)
            for name, host in self.hosts.items()
        )
        return next((one for one in offered if one is not None and one.excludes_processes), None)

    def get_conflict_resolution_strategy(
        self, *, meta_client: MetaClientView
    ) -> ConflictResolutionStrategy | None:
        """What any of them takes for a conflict."""
        asked = self._each(
            meta_client, lambda host, client: host.get_conflict_resolution_strategy(client)
        )
        kept: list[ConflictResolutionStrategy] = []
        for one in asked.values():
            if one is not None and one not in kept:
                kept.append(one)
        return JointStrategy(tuple(kept)) if len(kept) > 1 else next(iter(kept), None)

    # --- what is taken out of them: from the last to the first -----------------------------------

    def before_rollback(
        self, *, meta_client: MetaClientView, instant: Instant, **given: Any
    ) -> None:
        """Fence all against an instant, or take it out, last first."""
        if instant.is_completed:
            plan = RestorePlan.of_write(instant)
            self._taken_back("before_rollback", meta_client, plan, {**given, "instant": instant})
        else:
            self._in_turn("before_rollback", meta_client, {**given, "instant": instant})

    def before_restore(
        self, *, meta_client: MetaClientView, restore_plan: RestorePlan, **given: Any
    ) -> None:
        """Have all of them return to the savepoint, the last format first."""
        given = {**given, "restore_plan": restore_plan}
        self._taken_back("before_restore", meta_client, restore_plan, given)


def _in_all(hook: Hook) -> Callable[..., FormatCommit | None]:
    """A hook that calls that of every format, and joins their receipts."""
    gives_receipts = hook.returns is FormatCommit

    def ask(
        self: SeveralFormats, *, meta_client: MetaClientView, **given: Any
    ) -> FormatCommit | None:
        found = self._in_turn(hook.name, meta_client, given, last_first=hook.last_first)
        return JointCommit.of(found) if gives_receipts else None

    return ask


for _hook in HOOKS.values():
    if _hook.name not in vars(SeveralFormats) and _hook.returns in (FormatCommit, type(None)):
        setattr(SeveralFormats, _hook.name, _in_all(_hook))


def _place(held: HeldMetadata | None, name: str) -> HeldMetadata | None:
    """A format's own place for what it reads under the lock."""
    if held is None:
        return None
    if held.value is None:
        held.value = {}
    places, earlier = held.value, held.earlier
    assert isinstance(places, dict)  # noqa: S101 - no other code keeps something there
    if name not in places:
        before = earlier.get(name) if isinstance(earlier, dict) else None
        places[name] = HeldMetadata() if before is None else before.handed_on()
    found: HeldMetadata = places[name]
    return found


# --- what several formats hold together -----------------------------------------------------------


ClientOf = Callable[[MetaClientView, str], TableMetaClient]
"""Gives the client of a table as one of a single format."""


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one format holds, by its own timeline; a ``NamedInstants``."""

    timeline: TimelineView

    def holds(self, instant: Instant) -> bool:
        """Whether the format's timeline has it as completed."""
        found = self.timeline.find(instant.requested_time, instant.action)
        return found is not None and found.is_completed

    def names(self, instant: Instant) -> bool:
        """Whether the format names what the Hudi timeline has as pending."""
        seen = self.timeline
        return isinstance(seen, Timeline) and instant in seen.ahead


@dataclass(frozen=True, slots=True)
class JointTimelineFactory:
    """The timeline on which only what every format holds is completed."""

    factories: Mapping[str, TimelineFactory]
    client_of: ClientOf

    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        """Return the fenced timeline; the Hudi timeline is read once, and first."""
        whole = meta_client.timeline()
        lineages = []
        for name, factory in self.factories.items():
            client = self.client_of(meta_client, name)
            seeing = client if not isinstance(whole, Timeline) else client.seeing(whole)
            lineages.append(_Seen(factory.active_timeline(seeing)))
        return fence(whole, lineages)


@dataclass(frozen=True, slots=True)
class UnitedListing:
    """The files of the table, by its own metadata.

    One format may be an instant ahead of another, and no longer name the files that a reader needs
    until both hold it; the table's metadata table, or the storage, has the files of both states.
    """

    def create(self, meta_client: MetaClientView) -> FileIndex:
        """Return the lister of the table's files."""
        return table_lister(meta_client)


@dataclass(frozen=True, slots=True)
class JointStrategy:
    """What any of several strategies takes for a conflict is one."""

    strategies: Sequence[ConflictResolutionStrategy]

    @property
    def granularity(self) -> Granularity:
        """The coarsest of all."""
        order = list(Granularity)
        return max((one.granularity for one in self.strategies), key=order.index)

    def candidates(
        self, began: TimelineView, now: TimelineView, instant: Instant
    ) -> Sequence[Instant]:
        """The instants that any of them compares with."""
        found = (one.candidates(began, now, instant) for one in self.strategies)
        return tuple(dict.fromkeys(each for those in found for each in those))

    def conflict(self, mine: CommitMetadata, theirs: CommitMetadata) -> str | None:
        """Return the first reason that one of them has."""
        reasons = (one.conflict(mine, theirs) for one in self.strategies)
        return next((one for one in reasons if one is not None), None)
