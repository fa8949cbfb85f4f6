"""A folder of wheels that pip installs from; nothing is downloaded.

What the wheels need of others is linked from this environment beforehand, so that pip finds it
installed and judges whether it is what the wheels ask for.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement

from tests.packaging.built_wheels import CleanEnvironment, declared, run


class LocalIndex:
    """A folder with wheels, which are also known by the names of their projects."""

    def __init__(self, folder: Path, wheels: Mapping[str, Path]) -> None:
        self.folder, self._wheels = folder, wheels
        for wheel in wheels.values():
            shutil.copy(wheel, folder)

    def install(self, environment: CleanEnvironment, *wanted: str) -> None:
        """Have pip install projects of the folder, each with its extras: ``name[extra]``."""
        for requirement in map(Requirement, wanted):
            for extra in ("", *requirement.extras):
                wheel = self._wheels[requirement.name]
                environment.link(declared(wheel, extra, self._wheels))
        pip = (sys.executable, "-m", "pip", "--isolated", "--python", environment.python)
        options = ("--no-index", "--find-links", self.folder, "--no-compile", "--quiet")
        run(*pip, "install", *options, *wanted)
        run(*pip, "check")
