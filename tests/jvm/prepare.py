"""Bring Spark and the runtimes of the formats here: virtual environments by pip, jars by Maven.

Run by ``make interop`` and ``make bench-jvm``; with nothing changed it returns at once. Every
package is checked against the hash of its lock, every jar against the checksum of its repository.
``make captured-tables`` alone needs older releases of Hudi, and nothing of the other formats:
``python -m tests.jvm.prepare captured_tables``.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent.parent
REST_CATALOG: Final = HERE.parent / "rest_catalog" / "pom.xml"
FOLDER: Final = ROOT / ".java" / "jvm"
"""Where environments (by the name of their lock) and jars (by that of their ``pom.xml``) are."""


OLDER: Final = "captured_tables"
"""Of the jars: the older releases of Hudi."""


def main() -> None:
    """Prepare what is missing, or was made from other versions."""
    if sys.argv[1:] == [OLDER]:
        environments, jars = "spark35", ["hudi", f"{OLDER}/*"]
    else:
        environments, jars = "*", ["*"]
        make(FOLDER / REST_CATALOG.parent.name, REST_CATALOG, fetch_jars)
    for lock in sorted(HERE.glob(f"environments/{environments}.lock")):
        make(FOLDER / lock.stem, lock, make_environment)
    for pom in sorted(pom for some in jars for pom in HERE.glob(f"jars/{some}/pom.xml")):
        make(FOLDER / pom.parent.relative_to(HERE / "jars"), pom, fetch_jars)


def make(folder: Path, source: Path, function: object) -> None:
    """Fill a folder from the file that says what belongs there, where that has changed."""
    assert callable(function)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    done = folder / "prepared"
    if done.exists() and done.read_text(encoding="utf-8") == digest:
        return
    print(f"set-up: {folder.relative_to(ROOT)}", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    function(folder, source)
    done.write_text(digest, encoding="utf-8")


def make_environment(folder: Path, lock: Path) -> None:
    """Make a virtual environment of what a lock names, built by the setuptools that it names."""
    run([sys.executable, "-m", "venv", folder])
    text = lock.read_text(encoding="utf-8")
    start = text.index("setuptools==")
    build_tool = folder / "build_tool.lock"
    build_tool.write_text(text[start:], encoding="utf-8")
    pip: list[str | Path] = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "-q",
        "--disable-pip-version-check",
        "install",
    ]
    pip += ["--require-hashes", "--no-deps", "--no-build-isolation", "--use-pep517"]
    run([*pip, "-r", build_tool])
    run([*pip, "-r", lock])


def fetch_jars(folder: Path, pom: Path) -> None:
    """Copy what a ``pom.xml`` depends on."""
    goal = ["dependency:copy-dependencies", f"-DoutputDirectory={folder}"]
    run(["mvn", "--quiet", "--batch-mode", "--file", pom, *goal])


def run(command: list[str | Path]) -> None:
    """Run a command; its own messages are shown, and its failure ends the run."""
    try:
        done = subprocess.run(command, check=False)
    except FileNotFoundError:
        raise SystemExit(f"set-up: {command[0]} is missing; install it (Debian: maven)") from None
    if done.returncode != 0:
        raise SystemExit(f"set-up: {command[0]} failed; its own message stands above")


if __name__ == "__main__":
    main()
