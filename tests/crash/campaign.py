"""All cases of the crash rig, and the processes that run them."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.pool import Pool
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path
from typing import Any, Final, TypeVar, overload

from tests.crash.counting_storage import Fault, faults
from tests.crash.late_requests import LANDS, LATE
from tests.crash.rig import Case, Verdict
from tests.crash.s3_rig import S3Rig, S3Verdict
from tests.crash.s3_scenes import S3Case
from tests.crash.scenes import SCENES
from tests.crash.tables import ALL_FORMATS

STEPS_FILE: Final = Path(__file__).with_name("steps.json")
"""Every step of every scene that is known, by format and scene."""
HOWS: Final = ("before", "torn", "err_before", "err_after")
"""What can go wrong at every step. To die after one is to die before the next."""
PAIRED: Final = ("upsert", "insert_overwrite", "rollback")
"""Scenes whose recovery is interrupted at a second step, too."""
LATE_SCENES: Final = ("upsert", "insert_overwrite", "delete_partitions")
"""Scenes whose commit arrives late."""
_SEED: Final = 93
_GROUP: Final = 4
"""Cases that a process is given at a time."""
_DEATHS: Final = 16
"""Deaths that one process leaves behind; see :meth:`~tests.crash.rig.Rig.run_deaths`."""

_AnyCase = TypeVar("_AnyCase", bound=Case | S3Case)
_rigs: list[S3Rig] = []


@dataclass(frozen=True, slots=True)
class Counted:
    """A scene whose steps were counted, with nothing going wrong."""

    verdict: Verdict

    @property
    def name(self) -> str:
        """Format and scene, as one word."""
        return f"{self.verdict.case.format_name}.{self.verdict.case.scene}"

    def number(self, step: str) -> int:
        """Return the number of the last step of a name."""
        return max(at for at, name in enumerate(self.verdict.steps, 1) if name == step)

    def cases(self, hows: Sequence[str] = HOWS, *, is_whole: bool = True) -> Iterator[Case]:
        """Yield every case of the scene; or, if it need not be whole, a death before every step,
        and half of a step and an error once for each kind of step."""
        case, names = self.verdict.case, self.verdict.steps
        yield case
        for fault in faults((len(names), self.verdict.tearable), hows):
            if is_whole or fault.how == "before" or self._stands_for_others(fault):
                yield case._replace(fault=fault)
        if "before" in hows:
            yield case._replace(fault=Fault(len(names), "after"))

    def _stands_for_others(self, fault: Fault) -> bool:
        """Whether a fault is at the first step of its kind; the last in errors of every other kind,
        which are errors with all done."""
        steps = self.verdict.steps
        name = steps[fault.at - 1]
        is_first = name not in steps[: fault.at - 1]
        is_odd = list(dict.fromkeys(steps)).index(name) % 2 == 1
        if fault.how == "err_after":
            return is_odd and name not in steps[fault.at :]
        return is_first and not (fault.how == "err_before" and is_odd)


@contextmanager
def workers(count: int | None = None) -> Iterator[Pool]:
    """Start processes that run cases, one for each processor."""
    processors = sorted(os.sched_getaffinity(0))
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="crashes-") as folder:
        number = context.Value("i", 0)
        with context.Pool(count or len(processors), _start, (number, processors, folder)) as pool:
            yield pool


def _start(number: Synchronized[int], processors: Sequence[int], folder: str) -> None:
    with number.get_lock():
        mine = number.value
        number.value += 1
    # on one processor nothing runs side by side: the steps come in the same order every time
    os.sched_setaffinity(0, {processors[mine % len(processors)]})
    own = Path(folder, f"worker-{mine}")
    own.mkdir()
    _rigs.append(S3Rig(own, sound=Path(folder, "sound")))


def _run(cases: Sequence[Case | S3Case]) -> Sequence[Verdict | S3Verdict]:
    rig = _rigs[0]
    if len(cases) > 1 and all(map(_is_death, cases)):
        return rig.run_deaths([one for one in cases if isinstance(one, Case)])
    return [rig.run_requests(one) if isinstance(one, S3Case) else rig.run(one) for one in cases]


def _is_death(case: Case | S3Case) -> bool:
    """Whether what a process leaves before a step is all there is to a case."""
    is_alone = isinstance(case, Case) and case.second is None and case.fault is not None
    return is_alone and case.fault is not None and case.fault.how == "before"


def _batches(cases: Iterable[Case | S3Case]) -> Iterator[Sequence[Case | S3Case]]:
    """Yield what a process is given at a time: deaths of one scene, or some other cases."""

    def alike(case: Case | S3Case) -> tuple[object, ...]:
        return _is_death(case), *((case[:2], case.mutant) if _is_death(case) else ())

    for (is_death, *_), found in itertools.groupby(cases, alike):
        number = _DEATHS if is_death else _GROUP
        while batch := tuple(itertools.islice(found, number)):
            yield batch


def _count(case: Case) -> Verdict:
    return _rigs[0].count(case)


def _count_requests(case: S3Case) -> S3Verdict:
    return _rigs[0].count_requests(case)


@overload
def run(pool: Pool, cases: Iterable[Case]) -> Iterator[Verdict]: ...
@overload
def run(pool: Pool, cases: Iterable[S3Case]) -> Iterator[S3Verdict]: ...
@overload
def run(pool: Pool, cases: Iterable[Case | S3Case]) -> Iterator[Verdict | S3Verdict]: ...
def run(pool: Pool, cases: Iterable[Any]) -> Iterator[Any]:
    """Run cases; yield how they ended, in any order."""
    return itertools.chain.from_iterable(pool.imap_unordered(_run, _batches(cases)))


def scenes(
    formats: Sequence[str] = ALL_FORMATS, names: Sequence[str] = tuple(SCENES)
) -> Iterator[Case]:
    """Yield every scene once, with nothing going wrong; those of others are passed over."""
    for format_name in formats:
        for name in names:
            if name in SCENES and format_name in SCENES[name].formats:
                yield Case(format_name, name)


def count(pool: Pool, cases: Iterable[Case]) -> list[Counted]:
    """Count the steps of scenes."""
    return [Counted(verdict) for verdict in pool.imap(_count, cases, _GROUP)]


def count_requests(pool: Pool, cases: Iterable[S3Case]) -> list[S3Verdict]:
    """Count the requests of scenes on a store of S3's protocol."""
    return list(pool.imap(_count_requests, cases, _GROUP))


def all_cases(
    counted: Sequence[Counted], hows: Sequence[str], second: int, *, is_whole: bool = True
) -> list[Case]:
    """Return every case of the campaign.

    ``hows``: what can go wrong. ``second``: how many times, for each format and scene, recovery is
    interrupted as well. ``is_whole``: see :meth:`Counted.cases`.
    """
    cases = [case for one in counted for case in one.cases(hows, is_whole=is_whole)]
    cases += two_deaths(counted, second)
    cases += late(counted, second)
    return cases


def sample(cases: Sequence[_AnyCase], number: int) -> list[_AnyCase]:
    """Return some of the cases, always the same, in an order that makes each scene once."""
    chosen = random.Random(_SEED).sample(range(len(cases)), min(number, len(cases)))
    return [cases[at] for at in sorted(chosen)]


def late(counted: Sequence[Counted], number: int) -> Iterator[Case]:
    """Yield cases in which the format's commit arrives after its sender has died.

    It lands at every step of the write that follows an upsert, and at some after other scenes.
    """
    chosen = random.Random(_SEED)
    steps = {one.verdict.case[:2]: len(one.verdict.steps) for one in counted}
    for (format_name, scene), length in steps.items():
        if format_name == "native" or scene not in LATE_SCENES or number == 0:
            continue
        # the next write makes good what is left and does what any write does
        places = range(1, 2 * length + 1)
        some = places if scene == "upsert" else chosen.sample(places, min(number, len(places)))
        for place in some:
            yield Case(format_name, scene, Fault(0, LATE), Fault(place, LANDS))


def two_deaths(counted: Sequence[Counted], number: int) -> Iterator[Case]:
    """Yield cases in which both a writer and the one that makes good what it left die.

    ``number``: how many for each format and scene.
    """
    chosen = random.Random(_SEED)
    for one in counted:
        verdict = one.verdict
        if verdict.case.scene not in PAIRED:
            continue
        for _ in range(number):
            first = Fault(chosen.randint(1, len(verdict.steps)), "before")
            # a recovery has more steps than a write; one that has fewer ends well
            second = Fault(chosen.randint(1, 2 * len(verdict.steps)), chosen.choice(HOWS[:2]))
            yield verdict.case._replace(fault=first, second=second)


def steps_by_name(counted: Iterable[Counted]) -> Mapping[str, Any]:
    """Return the names of the steps of every scene."""
    return {one.name: one.verdict.steps for one in counted}
