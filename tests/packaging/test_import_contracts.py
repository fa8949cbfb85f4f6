"""Who may import whom: the contracts hold, and every one of them can break."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGES = ("hudi_core", "pyspark_hudi", "native_format", "iceberg_format", "delta_format")

# one module that nobody may write, per room
STRAYS = {
    "hudi_core/model/stray.py": "import hudi_core.config\n",
    "hudi_core/read/stray.py": "import hudi_core.read.foreign\n",
    "hudi_core/storage/stray.py": (
        "import hudi_core.engine.local\n"
        "import kazoo.client\n"
        "import native_format\n"
        "import pluggy\n"
        "import pyspark.sql\n"
        "import pytest\n"
        "import rich\n"
    ),
    "pyspark_hudi/stray.py": "import native_format\n",
    "native_format/stray.py": "import hudi_core.storage\nimport iceberg_format\n",
}


@pytest.mark.impure
def test_every_import_goes_where_it_may() -> None:
    done = lint_imports(REPOSITORY)
    assert done.returncode == 0, done.stdout


def test_every_contract_notices_a_stray_module(tmp_path: Path) -> None:
    for package in PACKAGES:
        shutil.copytree(REPOSITORY / package, tmp_path / package)
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    for path, text in STRAYS.items():
        (tmp_path / path).write_text(text)

    done = lint_imports(tmp_path)

    kept = [name for name in contracts() if f"{name} BROKEN" not in done.stdout]
    assert kept == [], done.stdout
    assert done.returncode == 1


def contracts() -> list[str]:
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    return [contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]]


def lint_imports(tree: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).with_name("lint-imports")
    wide = os.environ | {"COLUMNS": "200"}
    return subprocess.run(
        [command, "--no-cache", "--no-logo"],
        cwd=tree,
        env=wide,
        capture_output=True,
        text=True,
        check=False,
    )
