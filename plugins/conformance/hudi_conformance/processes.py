"""Python code in another process, which finds what this one finds."""

from __future__ import annotations

import os
import subprocess
import sys


def in_another_process(code: str, *arguments: str) -> str:
    """Run code and return what it prints.

    Hashes of strings differ there.
    """
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = os.environ | {"PYTHONPATH": path, "PYTHONHASHSEED": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
