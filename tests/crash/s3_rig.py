"""One case of the rig on a store of S3's protocol: a request meets a fault, others come after.

Every client passes the proxy, also those inside of libraries, which the rig of the disk cannot see.
What is checked is asked of the store itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from obstore.store import S3Store

import hudi_core as hudi
from delta_format import commit
from delta_format.commit import Record
from delta_format.log import Head
from delta_format.versions import NewVersion, make_next
from hudi_core.errors import CommitConflictError, HudiError, StorageError
from hudi_core.spi import FormatCommit, MetaClientView
from hudi_core.storage import object_store
from hudi_core.storage.object_store import ObjectStorage
from hudi_core.storage.options import StorageOptions
from hudi_core.txn.locks import registry
from hudi_core.txn.locks.storage import StorageLock
from tests.crash.actions import ACTIONS, NewTable, next_write
from tests.crash.check_table import ACKED, FAILED, OPEN, Report, check_rows, check_table
from tests.crash.check_unfinished import check_new
from tests.crash.mutants import MUTANTS, Mutant, changed
from tests.crash.place import S3Place
from tests.crash.rig import Lost, Named, Rig, Shape, mark_of, secrets_in, shape_of, told_by
from tests.crash.rows import FIRST, SECOND, as_table
from tests.crash.s3_faults import LASTING, REPEATED, S3Fault
from tests.crash.s3_scenes import S3_SCENES, S3Case, S3Wound
from tests.crash.s3_service import BUCKET, REGION, S3Service, s3_service
from tests.crash.tables import CANARY, OPTIONS, crashing_table

_owner: Final = ObjectStorage._owner


def _of_nobody(storage: ObjectStorage, path: str) -> tuple[Any, str | None]:
    """The token of a put says nothing."""
    return _owner(storage, path)[0], None


def _made_once(
    meta_client: MetaClientView, head: Head, what: Record, version: NewVersion
) -> FormatCommit:
    """An error of the store means that nothing has happened."""
    try:
        make_next(meta_client, head, version)
    except StorageError as error:
        raise CommitConflictError(f"{what.instant} is not recorded", "Run it again.") from error
    return FormatCommit(str(head.version), head.root)


@contextmanager
def _no_look() -> Iterator[None]:
    """What failed in the store, or in the format, has not happened; no token tells otherwise."""
    formats = MUTANTS["no look at the format after an error"]
    token = (ObjectStorage, "_owner", _of_nobody)
    with formats(), changed(token, (commit, "_make", _made_once)):
        yield


S3_MUTANTS: Final[Mapping[str | None, Mutant]] = {
    **MUTANTS,
    "no look at the token": partial(changed, (ObjectStorage, "_owner", _of_nobody)),
    "no look at the log after an error": _no_look,
}


if TYPE_CHECKING:
    from obstore.store import RetryConfig

T = TypeVar("T")
Names = frozenset[str]
ROOT: Final = f"s3://{BUCKET}/tables/one"
LATER_S: Final = 7200
_OPTIONS: Final = {
    **OPTIONS,
    "hoodie.metadata.index.column.stats.enable": "false",
    "hoodie.write.lock.wait_time_ms": "3000",
}
"""Without what makes more requests of a kind that there is anyway."""


class S3Verdict(NamedTuple):
    """How a case ended; see :class:`~tests.crash.rig.Verdict`. The steps are changing requests."""

    case: S3Case
    violations: tuple[str, ...]
    steps: tuple[str, ...]
    told: str
    cpu_s: float


class _Acted(NamedTuple):
    """What has come of a write.

    ``names``: names of the requests that changed something. ``tried``: all that has been tried on
    the table. ``shown``: names of the effects that were seen. ``is_late``: whether the next writer
    comes two hours later: what keeps others away may be left. ``shape``: how many objects of each
    kind there are. ``is_known``: whether a table of this shape was checked before, by whose caller
    the same was told: then its rows and instants were looked at, and nothing else will be.
    """

    names: Sequence[str] = ()
    tried: tuple[Named, ...] = ()
    shown: Names = frozenset()
    is_late: bool = False
    shape: Shape = frozenset()
    is_known: bool = False
    violations: Sequence[str] = ()

    @property
    def told(self) -> str:
        """What the caller of the action was told."""
        return next((one.told for one in self.tried[::-1] if one.action in ACTIONS), OPEN)


@dataclass(slots=True)
class S3Rig(Rig):
    """Runs cases on one store, one after the other."""

    _running: ExitStack = field(default_factory=ExitStack)
    _service: S3Service | None = None
    _kept: set[str] = field(default_factory=set)

    @property
    def service(self) -> S3Service:
        """The store, started when it is first asked for."""
        if self._service is None:
            self._service = self._running.enter_context(s3_service())
        return self._service

    def count_requests(self, case: S3Case) -> S3Verdict:
        """Do what a scene does, without a fault and without a check, to know its requests."""
        before = self._cpu()
        self._begin_on_store(case)
        action, is_late = S3_SCENES[case.scene].action, _is_wounded(case)
        ended = self.fork(_act_alone, self.service, case, action, None, is_late)
        acted: _Acted = self._answer(ended)
        return self._verdict(case, acted, before)

    def run_requests(self, case: S3Case) -> S3Verdict:
        """Run a case."""
        before = self._cpu()
        acted = _Acted()
        try:
            acted = self._act_on_store(case, self._begin_on_store(case))
            if not (acted.violations or acted.is_known):
                ended = self.fork(_mend, self.service, case, acted, self.folder_of_sound)
                found: list[str] = self._answer(ended)
                acted = acted._replace(violations=[*found, *secrets_in(ended.printed)])
                if not acted.violations:
                    mark_of(self.folder_of_sound, case, acted.tried, acted.shape).touch()
        except Lost as lost:
            acted = acted._replace(violations=[str(lost)])
        return self._verdict(case, acted, before)

    def stop(self) -> None:
        """End the store."""
        self._running.close()

    def _verdict(self, case: S3Case, acted: _Acted, before: float) -> S3Verdict:
        found, names = tuple(acted.violations), tuple(acted.names)
        return S3Verdict(case, found, names, acted.told, self._cpu() - before)

    def _cpu(self) -> float:
        return self.cpu_s + self.service.cpu_s()

    def _begin_on_store(self, case: S3Case) -> tuple[Named, ...]:
        wounds = S3_SCENES[case.scene].wounds
        if S3_SCENES[case.scene].is_new:
            self.service.restore()
            return ()
        key = f"{case.plugin} {wounds}"
        if key not in self._kept:
            self.service.restore()
            self._answer(self.fork(_create, self.service, case.plugin))
            for wound in wounds:
                self._wound_on_store(case, wound, key)
            self.service.keep(key)
            self._kept.add(key)
        self.service.restore(key)
        if wounds:
            self.service.age(LATER_S)
        return tuple(Named(one.action) for one in wounds)

    def _wound_on_store(self, case: S3Case, wound: S3Wound, key: str) -> None:
        """Let a writer do what it does up to a request, and nothing after it."""
        self.service.keep(key)
        whole: _Acted = self._answer(self.fork(_act_alone, self.service, case, wound.action, None))
        at = len(whole.names) - whole.names[::-1].index(wound.request)
        self.service.restore(key)
        dead = S3Fault(at, "gone")
        self._answer(self.fork(_act_alone, self.service, case, wound.action, dead))

    def _act_on_store(self, case: S3Case, tried: tuple[Named, ...]) -> _Acted:
        now = (*tried, Named(S3_SCENES[case.scene].action))
        ended = self.fork(_act, self.service, case, now, self.folder_of_sound)
        acted: _Acted = self._answer(ended)
        return acted._replace(violations=[*acted.violations, *secrets_in(ended.printed)])


# --- what the processes do
def _at(endpoint: str) -> S3Place:
    return S3Place(ROOT, endpoint, "crash-rig", CANARY, REGION)


def _open(service: S3Service) -> hudi.Table:
    """Open the table through the proxy."""
    return _at(service.proxy).open(_OPTIONS)


def _create(service: S3Service, format_name: str) -> None:
    """Make the table that every scene begins with."""
    table = crashing_table(ROOT, format_name, {**_OPTIONS, **_at(service.proxy).given})
    table.insert(as_table(FIRST))
    table.upsert(as_table(SECOND))


def _subject(service: S3Service, case: S3Case) -> Any:
    """Return what the action of a scene is done to."""
    if S3_SCENES[case.scene].is_new:
        return NewTable(ROOT, case.plugin, {**_OPTIONS, **_at(service.proxy).given})
    return _open(service)


def _act_alone(
    service: S3Service, case: S3Case, action: str, fault: S3Fault | None, is_late: bool = False
) -> _Acted:
    """Do one thing; return what was told, and the requests."""
    with S3_MUTANTS[case.mutant](), _impatient(), _later(is_late, LATER_S):
        service.arm(fault)
        told = told_by(lambda: ACTIONS[action].run(_subject(service, case)))
        names = service.names()
        service.arm()
    if told == FAILED and ACTIONS[action].is_finished_by_others:
        told = OPEN
    return _Acted(names, (Named(action, told),))


def _act(service: S3Service, case: S3Case, tried: tuple[Named, ...], sound: Path) -> _Acted:
    """Do the last of what is tried, and check what comes of it."""
    fault, wounded = case.fault, _is_wounded(case)
    acted = _act_alone(service, case, tried[-1].action, fault, wounded)
    acted = acted._replace(tried=(*tried[:-1], *acted.tried))
    if acted.told != ACKED and (fault is None or fault.how in REPEATED):
        words = f"2: {acted.told} was told, where repeating a request does"
        return acted._replace(violations=[words])
    place = _at(service.endpoint)
    is_late = wounded or (fault is not None and _keeps_away(acted.names, fault))
    acted = acted._replace(is_late=is_late, shape=shape_of(place))
    if S3_SCENES[case.scene].is_new:
        if is_late:
            service.age(LATER_S)
        with _later(is_late):
            return acted._replace(violations=check_new(place).violations)
    travels = fault is not None and fault.how.startswith("late")
    if not travels and mark_of(sound, case, acted.tried, acted.shape).exists():
        found = check_rows(place, [one.tried() for one in acted.tried], at_rest=False)
        return acted._replace(is_known=True, violations=found.violations)
    if is_late:
        service.age(LATER_S)
    with _later(is_late):
        report = _check(service, acted.tried, at_rest=False, seen=frozenset())
    return acted._replace(shown=report.shown or frozenset(), violations=report.violations)


def _is_wounded(case: S3Case) -> bool:
    return bool(S3_SCENES[case.scene].wounds)


def _keeps_away(names: Sequence[str], fault: S3Fault) -> bool:
    """Whether a fault may leave a lock, a sign of life or the like, for its age to decide."""
    if fault.how in LASTING:
        return True
    met = names[fault.at - 1] if fault.at <= len(names) else ""
    aging = (".locks/", ".heartbeat/", ".temp/", "delete")
    return fault.how not in REPEATED and any(one in met for one in aging)


def _mend(service: S3Service, case: S3Case, acted: _Acted, sound: Path) -> list[str]:
    """Write, and check that nothing is left open."""
    tried, seen = acted.tried, acted.shown
    travels = case.fault is not None and case.fault.how.startswith("late")
    if acted.is_late:
        service.age(LATER_S)
    with S3_MUTANTS[case.mutant](), _impatient(), _later(acted.is_late):
        scene = S3_SCENES[case.scene]
        table = _subject(service, case)
        if scene.is_repeated:
            _done(lambda: ACTIONS[scene.action].run(table), travels)
            table = _open(service)
            tried = (*tried[:-1], tried[-1]._replace(told=ACKED))
        if travels:
            tried = _done(partial(_go_on, table, tried), travels)
            service.land()
            report = _check(service, tried, at_rest=False, seen=seen)
            if report.violations:
                return report.violations
            seen = report.shown or frozenset()
            table = _open(service)
        tried = _go_on(table, tried)
        place = _at(service.endpoint)
        mark = mark_of(sound, case, tried, shape_of(place))
        check = check_rows if mark.exists() else check_table
        found = check(place, [one.tried() for one in tried], at_rest=True, seen=seen).violations
    if not found:
        mark.touch()
    return [one for one in found if not (travels and _is_harmless(one))]


def _is_harmless(violation: str) -> bool:
    """Whether what is found is a file that arrived when all was over, and nobody counts: data,
    or what goes once it is old enough."""
    aging = (".temp/probe-", ".temp/clock-", ".heartbeat/", "creation.json")
    return violation.endswith("is of no completed write") or violation.startswith(
        tuple(f"5: .hoodie/{name}" for name in aging)
    )


def _done(call: Callable[[], T], again: bool) -> T:
    """Call once, and once more where something may arrive at any moment that gets in the way."""
    try:
        return call()
    except HudiError:
        if not again:
            raise
        return call()


def _go_on(table: hudi.Table, tried: tuple[Named, ...]) -> tuple[Named, ...]:
    number = len(tried)
    # of its effect alone: it is opened here with what reaches the store
    row = next_write(number).effect({})
    table.upsert(as_table(row))
    return (*tried, Named(f"next{number}", ACKED))


def _check(service: S3Service, tried: Sequence[Named], **more: Any) -> Report:
    return check_table(_at(service.endpoint), [one.tried() for one in tried], **more)


# --- how these processes differ from others
@contextmanager
def _impatient() -> Iterator[None]:
    """Let clients repeat a request twice and at once, instead of for minutes."""
    retries: RetryConfig = {
        "max_retries": 2,
        "retry_timeout": timedelta(seconds=10),
        "backoff": {
            "init_backoff": timedelta(milliseconds=5),
            "base": 2,
            "max_backoff": timedelta(milliseconds=20),
        },
    }
    told = StorageOptions.for_object_store

    def for_object_store(self: StorageOptions) -> dict[str, str]:
        few = {
            "max_retries": "2",
            "retry_timeout": "10s",
            "backoff_config.init_backoff": "5ms",
            "backoff_config.max_backoff": "20ms",
        }
        return told(self) | few

    with changed(
        (object_store, "S3Store", partial(S3Store, retry_config=retries)),
        (StorageOptions, "for_object_store", for_object_store),
    ):
        yield


@contextmanager
def _later(is_late: bool, seconds: int = 2 * LATER_S) -> Iterator[None]:
    """Look at the leases of others with a clock that is ahead."""
    clock: Callable[[], float] = lambda: time() + seconds  # noqa: E731
    late = partial(StorageLock, wall_clock=clock)
    with changed(*([(registry, "StorageLock", late)] if is_late else [])):
        yield
