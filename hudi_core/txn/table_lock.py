"""The reentrant lock of one table, held by one thread."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from hudi_core.config.kinds import ConcurrencyMode, LockKind
from hudi_core.config.lock import LockConfig
from hudi_core.config.write import WriteConfig
from hudi_core.errors import HudiError, LockError, UnsafeStoreError
from hudi_core.meta_client import TableMetaClient
from hudi_core.model.files import BasePath
from hudi_core.model.instant_time import InstantTime
from hudi_core.model.protocols import LockProvider, Storage
from hudi_core.storage.location import parse_location
from hudi_core.storage.probes import require_conditional_puts
from hudi_core.table_handle import OpenTable
from hudi_core.timeline.timeline import Timeline
from hudi_core.txn import heartbeat
from hudi_core.txn.heartbeat import SERVICE_SIGN
from hudi_core.txn.locks.lock_file import HudiFileLock
from hudi_core.txn.locks.place import LockPlace
from hudi_core.txn.locks.registry import lock_provider
from hudi_core.txn.locks.waiting import BothLocks, Waiting, owner_of
from hudi_core.txn.publication import is_two_step

LOCK_FOLDER: Final = ".hoodie/.locks"
"""Holds the files of locks that are kept with the table."""
LOCK_FILES: Final = (".hoodie/lock", ".hoodie/.lock.crc")
"""The lock of Hudi's that is a file beside the table's own, and the checksum of that."""
_LEASE_NEEDED_S: Final = 5.0
"""More than a put takes."""
_LOCK_OPTIONS: Final = "hoodie.write.lock."
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Hold:
    """One hold of the lock.

    ``is_done``: what the lock was taken for has taken place, even if the lock is lost.
    ``heartbeats``: names of the heartbeats that were there when it began, where it looked.
    """

    is_done: bool = False
    heartbeats: Sequence[str] | None = None


class TableLock:
    """Wraps a provider so that a transaction can nest holds.

    ``timeout_s`` is the wait of one attempt, ``pause_s`` the seconds between two. ``signs`` are
    those of services of other processes, where the provider does not exclude these.
    """

    def __init__(
        self,
        provider: LockProvider,
        timeout_s: float,
        retries: int = 0,
        pause_s: float = 0.0,
        signs: ServiceSigns | None = None,
    ) -> None:
        self._provider = provider
        self._signs = signs
        self._timeout_s = timeout_s
        self._retries = retries
        self._pause_s = pause_s
        self._owner: int | None = None
        self._is_stuck = False

    @property
    def excludes_processes(self) -> bool:
        """Whether writers of other processes are kept out as well."""
        return self._provider.excludes_processes

    @contextmanager
    def held(self) -> Iterator[Hold]:
        """Hold the lock for the length of the block.

        Where the lock cannot be given back, that is raised only after a block that went well and
        did not say :attr:`Hold.is_done`: it hides no other error, and does not make a failure of
        what has taken place.
        """
        hold = Hold()
        if self._owner == threading.get_ident():
            yield hold
            return
        self._take()
        hold.heartbeats = self._wait_for_services()
        self._owner = threading.get_ident()
        try:
            yield hold
        except BaseException as error:
            self._owner = None
            try:
                self._unlock()
            except HudiError as failed:
                error.add_note(f"Nor could the table's lock be given back: {failed}")
            raise
        self._owner = None
        try:
            self._unlock()
        except HudiError:
            if not hold.is_done:
                raise
            _log.warning("the table's lock could not be given back", exc_info=True)

    @contextmanager
    def held_by_service(self) -> Iterator[Hold]:
        """Hold the lock for a table service.

        Where it does not exclude other processes, writers of these wait for the end of the block:
        see :class:`ServiceSigns`.
        """
        is_nested = self._owner == threading.get_ident()
        with self.held() as hold:
            if self._signs is None or is_nested:
                yield hold
                return
            with self._signs.shown(self._timeout_s):
                yield hold

    @property
    def is_exclusive(self) -> bool:
        """Whether no other process can have held the lock meanwhile."""
        return self._provider.excludes_processes and self._provider.lease_left() > 0

    def require_lease(self) -> None:
        """Refuse to go on when the lease is about to expire."""
        if self._provider.lease_left() < _LEASE_NEEDED_S:
            raise LockError(
                "The table's lock was lost: it could not be renewed for too long",
                "Nothing of this write is visible; run it again.",
            )

    def _unlock(self) -> None:
        try:
            self._provider.unlock()
        except HudiError:
            self._is_stuck = True
            raise
        self._is_stuck = False

    def _wait_for_services(self) -> Sequence[str] | None:
        if self._signs is None:
            return None
        try:
            return self._signs.wait(self._timeout_s)
        except BaseException:
            self._unlock()
            raise

    def _take(self) -> None:
        """Take the lock, and say so while that takes long."""
        if self._provider.try_lock(0):
            return
        with Waiting(self._provider) as waiting:
            # what this very hold has left locked does not become free by asking again and again
            for attempt in range(1 if self._is_stuck else self._retries + 1):
                if attempt:
                    time.sleep(self._pause_s)
                if self._provider.try_lock(self._timeout_s):
                    return
        hint = "Another writer holds it; try again, or raise hoodie.write.lock.wait_time_ms."
        if isinstance(self._provider, HudiFileLock):
            hint += f" Where no writer is alive, delete {self._provider.path}."
        owner = owner_of(self._provider)
        raise LockError(
            f"The table's lock was not free within {self._timeout_s:g} s, after "
            f"{waiting.seconds:.1f} s in all; it is held by {owner or 'another writer'}",
            hint,
            timeout_s=self._timeout_s,
            waited_s=round(waiting.seconds, 3),
            owner=owner,
        )


def table_lock(table: OpenTable, config: WriteConfig) -> TableLock:
    """Return the lock of an open table.

    Where the user names none it is, beside the lock that suits the table's place, the one that the
    table's format offers. Step 2 and the metadata table need a lock that excludes other processes,
    so that a format which offers none gets one in the table's store, also for a single writer.
    """
    provider = _provider_of(table, config.lock)
    if provider.excludes_processes:
        return _waiting(provider, config.lock)
    signs = ServiceSigns(table.client, config.heartbeat_interval_ms, config.heartbeat_misses)
    return _waiting(provider, config.lock, signs)


def _provider_of(table: OpenTable, options: LockConfig) -> LockProvider:
    place = partial(_place_lock, _place_of(table), options)
    if options.provider is not None or not is_two_step(table):
        return place()
    offered = _offered(table)
    if offered is not None:
        return BothLocks(place(), offered)
    try:
        return place(alone=False)
    except UnsafeStoreError:
        # no lock can lie in it: raised again for who expects other writers; a single one needs none
        return place()


def creation_lock(table: OpenTable, config: WriteConfig) -> TableLock:
    """Return the lock for creating a table.

    That of :func:`table_lock`, and one that excludes other processes, whatever the format and
    however many writers are expected later.
    """
    client, options = table.client, config.lock
    if options.provider is not None or parse_location(client.base_path).is_local:
        return table_lock(table, config)
    place = partial(_place_lock, _place_of(table), options)
    offered = _offered(table) if is_two_step(table) else None
    try:
        lock = place(alone=False)
    except UnsafeStoreError:
        if not _is_single_process(options):
            raise
        lock = place()
    else:
        if _is_single_process(options):
            # what keeps the writers of one process apart that are alone
            lock = BothLocks(place(), lock)
    return _waiting(lock if offered is None else BothLocks(lock, offered), options)


def lock_at(
    base_path: BasePath, storage: Storage, config: WriteConfig, name: str | None = None
) -> TableLock:
    """Return a table's lock, by options and the store's abilities.

    A single writer waits for it once; writers that expect others try again as often as their
    options say.

    Some locks are found by the table's ``name``. :class:`UnsafeStoreError`: several writers are
    expected, and the store ignores the conditions of puts.
    """
    return _waiting(_place_lock(LockPlace(base_path, storage, name), config.lock), config.lock)


def _place_of(table: OpenTable) -> LockPlace:
    client = table.client
    return LockPlace(client.base_path, client.storage, client.config.name)


def _waiting(
    provider: LockProvider, options: LockConfig, signs: ServiceSigns | None = None
) -> TableLock:
    return TableLock(
        provider,
        options.wait_ms / 1000,
        0 if _is_single_process(options) else options.retries,
        options.retry_wait_ms / 1000,
        signs,
    )


def _is_single_process(options: LockConfig) -> bool:
    return options.concurrency_mode is ConcurrencyMode.SINGLE_WRITER


def _place_lock(
    place: LockPlace, options: LockConfig, *, alone: bool | None = None
) -> LockProvider:
    """Return the lock that suits a table's place.

    ``alone``: no other process needs to be excluded; by default as the options say.
    """
    alone = _is_single_process(options) if alone is None else alone
    if not (alone or parse_location(place.base_path).is_local):
        if place.storage is not None:
            require_conditional_puts(place.storage)
        if options.provider is None:
            options = replace(options, provider=LockKind.STORAGE)
    return lock_provider(place, options)


def _offered(table: OpenTable) -> LockProvider | None:
    """Return the lock that the table's format offers, if it is one."""
    client = table.client
    given = {
        key.removeprefix(_LOCK_OPTIONS): value
        for key, value in client.options.items()
        if key.startswith(_LOCK_OPTIONS)
    }
    offered = table.host.get_lock_provider(client, given)
    if offered is not None and not offered.excludes_processes:
        _log.info("the lock of the %s format excludes no other process", table.host.name)
        return None
    return offered


# --- signs of services ----------------------------------------------------------------------------

# A single writer on an object store holds a lock between its threads alone. A service of another
# process (``hudi clean PATH``, ``Table.purge``) would change the timeline and the metadata table
# beside it: so it shows a heartbeat of a kind of its own, and who takes the lock waits for that
# to end. The service looks for writers after it has put its sign, and a writer for services after
# its heartbeat began; so one of the two sees the other.


_PAUSE_S: Final = 0.5
_FIRST_WORD_S: Final = 2.0


class ServiceSigns:
    """Shows the sign of a service, and waits for those of others."""

    def __init__(self, client: TableMetaClient, interval_ms: int, misses: int) -> None:
        self._client = client
        self._interval_ms = interval_ms
        self._misses = misses

    def wait(self, timeout_s: float) -> Sequence[str]:
        """Wait for services to end; returns the heartbeats left."""
        beating: Sequence[str] = ()

        def services() -> list[InstantTime]:
            nonlocal beating
            beating = self._beating()
            return self._alive_services(beating)

        self._wait(services, "a table service", time.monotonic() + timeout_s)
        return beating

    @contextmanager
    def shown(self, timeout_s: float) -> Iterator[None]:
        """Show a sign for the length of the block."""
        deadline = time.monotonic() + timeout_s
        sign = self._alone(deadline)
        try:
            self._wait(self._ending_writers, "a writer", deadline)
            yield
        finally:
            sign.stop()

    def _alone(self, deadline: float) -> heartbeat.Heartbeat:
        """Show a sign when no other service has one."""
        while True:
            name = InstantTime(f"{self._client.clock.next_time(Timeline.of(()))}{SERVICE_SIGN}")
            sign = heartbeat.Heartbeat(self._client.scratch, name, self._interval_ms)
            sign.start()
            try:
                others = [one for one in self._services() if one != name]
            except BaseException:
                sign.stop()
                raise
            if not others:
                return sign
            # two came at once: both withdraw, and one is the first to come again
            sign.stop()
            time.sleep(random.uniform(0, _PAUSE_S))  # noqa: S311 - no secret
            self._wait(self._services, "a table service", deadline)

    def _wait(self, at_work: Callable[[], list[InstantTime]], who: str, deadline: float) -> None:
        started, has_warned = time.monotonic(), False
        while found := at_work():
            now = time.monotonic()
            if now >= deadline:
                begun = found[0].removesuffix(SERVICE_SIGN)
                raise LockError(
                    f"In another process {who} is at work on {self._client.base_path}, begun at "
                    f"{begun}, and the lock of this one does not keep other processes out",
                    "Run it again when that has ended, or give both the same "
                    "hoodie.write.lock.provider: they take turns then.",
                    instant=begun,
                    waited_s=round(now - started, 3),
                )
            if not has_warned and now - started > _FIRST_WORD_S:
                has_warned = True
                _log.warning("waiting for %s of another process, begun at %s", who, found[0])
            time.sleep(min(_PAUSE_S, max(deadline - now, 0.01)))

    def _services(self) -> list[InstantTime]:
        return self._alive_services(self._beating())

    def _alive_services(self, beating: Sequence[str]) -> list[InstantTime]:
        found = [InstantTime(one) for one in beating if one.endswith(SERVICE_SIGN)]
        alive = [one for one in found if self._is_alive(one)]
        for dead in set(found).difference(alive):
            heartbeat.remove_heartbeat(self._client.storage, dead)
        return alive

    def _ending_writers(self) -> list[InstantTime]:
        """Writers that end: their instant is complete.

        Recovery knows the others.
        """
        found = [InstantTime(one) for one in self._beating() if not one.endswith(SERVICE_SIGN)]
        if not found:
            return []
        pending = {one.requested_time for one in self._client.timeline().pending()}
        return [one for one in found if one not in pending and self._is_alive(one)]

    def _is_alive(self, name: InstantTime) -> bool:
        return heartbeat.is_alive(self._client.storage, name, self._interval_ms, self._misses)

    def _beating(self) -> list[str]:
        return [one.name for one in self._client.storage.list(heartbeat.FOLDER)]
