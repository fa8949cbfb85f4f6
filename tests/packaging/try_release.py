"""Install everything from a folder of wheels into an empty environment: ``make release``.

Unlike the tests, which download nothing, it has pip get what the wheels need from wherever pip is
told to on this machine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from pathlib import Path

SCRIPT = Path(__file__).with_name("every_format.py")
WANTED = ("hudi-core[all]", "hudi-sql-format", "hudi-conformance")


def main(dist: Path) -> None:
    """Install, check, and let each format write a table."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "clean"
        venv.create(home, with_pip=True)
        python = home / "bin" / "python"
        for command in (
            (python, "-m", "pip", "install", "--quiet", "--find-links", dist.resolve(), *WANTED),
            (python, "-m", "pip", "check"),
            (home / "bin" / "hudi", "formats"),
            (python, "-I", SCRIPT, "native", "iceberg", "delta", "sql"),
            (home / "bin" / "hudi", "conformance", "run", "sql", "--checks", "F01,F16"),
        ):
            subprocess.run(command, cwd=folder, check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
