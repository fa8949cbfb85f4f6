"""Campaigns that go on where they were stopped: what was run without a violation, in a file.

Its first line says of which sources: of any others it proves nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.crash.rig import Case, Verdict
from tests.crash.s3_rig import S3Verdict
from tests.crash.s3_scenes import S3Case


class Journal:
    """What a campaign has run, one line of JSON for each case.

    ``path``: the file; ``None`` keeps nothing. ``sources``: a digest of what is proven; by default
    of all modules of the project. ``ValueError``: The file is of other sources.
    """

    def __init__(self, path: Path | None, sources: str | None = None) -> None:
        self._path = path
        if path is None:
            return
        now = sources or digest()
        if not path.exists():
            path.write_text(json.dumps([now, 0]) + "\n", encoding="utf-8")
        [then, _] = json.loads(path.read_text(encoding="utf-8").partition("\n")[0])
        if then != now:
            raise ValueError(f"{path} is of other sources; remove it to start over")

    def write(self, verdict: Verdict | S3Verdict) -> None:
        """Add a case that broke no promise; others are run again."""
        if self._path is not None and not verdict.violations:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([str(verdict.case), verdict.cpu_s]) + "\n")

    def split(
        self, cases: Iterable[Case | S3Case]
    ) -> tuple[list[Verdict | S3Verdict], list[Case | S3Case]]:
        """Verdicts of the cases that are in it, and the cases that are not."""
        known = dict(self._lines())
        verdicts: list[Verdict | S3Verdict] = []
        left: list[Case | S3Case] = []
        for case in cases:
            cpu_s = known.get(str(case))
            if cpu_s is None:
                left.append(case)
            elif isinstance(case, S3Case):
                verdicts.append(S3Verdict(case, (), (), "", cpu_s))
            else:
                verdicts.append(Verdict(case, (), (), (), "", cpu_s))
        return verdicts, left

    def _lines(self) -> Sequence[tuple[str, float]]:
        if self._path is None or not self._path.exists():
            return []
        lines = self._path.read_text(encoding="utf-8").splitlines(keepends=True)
        if lines and not lines[-1].endswith("\n"):  # whoever wrote it was stopped
            lines.pop()
            self._path.write_text("".join(lines), encoding="utf-8")
        return [(case, cpu_s) for case, cpu_s in map(json.loads, lines[1:])]


def digest() -> str:
    """A digest of every module of the project, tests included."""
    root = Path(__file__).parents[2]
    found = hashlib.sha256()
    for path in sorted(one for one in root.glob("*/**/*.py") if ".venv" not in one.parts):
        found.update(str(path.relative_to(root)).encode() + path.read_bytes())
    return found.hexdigest()
