"""Bring Trino's server by Maven and a Java runtime for it by pip; run by ``make trino``.

With nothing changed it returns at once.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
from pathlib import Path
from typing import Final

from tests.jvm.prepare import ROOT, fetch_jars, make, run

HERE: Final = Path(__file__).resolve().parent
SERVER: Final = ROOT / ".java" / "trino"
JAVA: Final = ROOT / ".java" / "trino_java"
_PLUGINS: Final = frozenset({"hudi", "iceberg", "delta-lake", "thrift"})


def main() -> None:
    """Prepare what is missing, or was made from other versions."""
    make(SERVER, HERE / "pom.xml", unpack)
    make(JAVA, HERE / "java.lock", install)


def unpack(folder: Path, pom: Path) -> None:
    """Unpack the server, without the plugins that no test needs."""
    fetch_jars(folder, pom)
    [archive] = folder.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(folder, filter="data")
    archive.unlink()
    [unpacked] = folder.iterdir()
    for plugin in (unpacked / "plugin").iterdir():
        if plugin.name not in _PLUGINS:
            shutil.rmtree(plugin)
    unpacked.rename(folder / "server")


def install(folder: Path, lock: Path) -> None:
    """Install the Java runtime that a lock names."""
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "install"]
    run([*pip, "--require-hashes", "--no-deps", "--target", folder, "-r", lock])


if __name__ == "__main__":
    main()
