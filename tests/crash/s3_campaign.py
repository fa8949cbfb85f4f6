"""All cases of the rig on a store of S3's protocol."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from tests.crash.s3_faults import WAYS, S3Fault
from tests.crash.s3_rig import S3Verdict
from tests.crash.s3_scenes import ON_S3, S3_SCENES, S3Case
from tests.tables import FORMATS

S3_FORMATS: Final = tuple(f"{name}{ON_S3}" for name in FORMATS)
"""Formats, as they are called here."""
S3_STEPS_FILE: Final = Path(__file__).with_name("s3_steps.json")
"""Every changing request of every scene that is known, by format and scene."""
EXHAUSTIVE: Final = ("upsert",)
"""Scenes of which every request meets every fault; of others it meets some, which are drawn."""
DRAWN: Final = 4
"""How many."""
FEW: Final = 2
"""How many where the campaign need not be whole; of exhaustive scenes :data:`DRAWN`."""
_LATEST: Final = 60
"""A request that is late arrives at most so many changing requests later."""
_SEED: Final = 93


def s3_scenes(
    formats: Sequence[str] = S3_FORMATS, names: Sequence[str] = tuple(S3_SCENES)
) -> Iterator[S3Case]:
    """Yield every scene once, with nothing going wrong; formats and scenes of others are passed
    over."""
    for format_name in formats:
        for name in names:
            case = S3Case(format_name, name)
            is_known = format_name in S3_FORMATS and name in S3_SCENES
            if is_known and case.plugin in S3_SCENES[name].formats:
                yield case


def s3_cases(counted: Sequence[S3Verdict], *, is_whole: bool = True) -> list[S3Case]:
    """Return every case of scenes whose requests were counted; fewer if it need not be whole.

    A request that is late arrives, in half of the cases, when its writer has gone on; in the others
    after the next write.
    """
    chosen = random.Random(_SEED)
    cases: list[S3Case] = []
    for verdict in counted:
        case = verdict.case
        cases.append(case)
        number = len(WAYS) if case.scene in EXHAUSTIVE else DRAWN
        if not is_whole:
            number = DRAWN if case.scene in EXHAUSTIVE else FEW
        for at in range(1, len(verdict.steps) + 1):
            for how in chosen.sample(tuple(WAYS), number):
                lands = chosen.choice((0, chosen.randint(1, _LATEST))) if "late" in how else 0
                cases.append(case._replace(fault=S3Fault(at, how, lands)))
    return cases


def requests_by_name(counted: Iterable[S3Verdict]) -> dict[str, Sequence[str]]:
    """Return the names of the changing requests of every scene."""
    return {f"{one.case.format_name}.{one.case.scene}": one.steps for one in counted}
