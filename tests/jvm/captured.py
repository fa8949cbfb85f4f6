"""Records of metadata tables that Hudi-Spark made, kept for tests without Java.

Run as a program it captures them again: ``python -m tests.jvm.captured``, after ``make interop``
has brought Hudi-Spark here. A case of ``make interop`` says when that is due.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Final

from tests.jvm.chapters import CHAPTERS, VERSIONS
from tests.jvm.engines import HUDI, Engine
from tests.jvm.records import Records
from tests.jvm.writers import HudiSpark

FILE: Final = Path(__file__).with_name("captured_records.zip")
NAMES: Final = ("types, partitioned", "nulls, partitioned", "life", "changed columns, partitioned")
"""The chapters that are kept."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)


@cache
def captured() -> dict[str, dict[str, dict[str, Records]]]:
    """Records by chapter, version and partition; nothing where none were captured yet."""
    if not FILE.exists():
        return {}
    with zipfile.ZipFile(FILE) as archive:
        return {
            Path(name).stem: json.loads(archive.read(name)) for name in sorted(archive.namelist())
        }


def main() -> None:
    """Let Hudi-Spark make the tables, and keep the records."""
    with tempfile.TemporaryDirectory() as scratch, zipfile.ZipFile(FILE, "w") as archive:
        engine = Engine(HUDI, Path(scratch))
        for name in NAMES:
            found = {
                version: CHAPTERS[name].make(
                    HudiSpark(engine), Path(scratch, f"{name} {version}"), version
                )
                for version in VERSIONS
            }
            # the same bytes for the same records
            entry = zipfile.ZipInfo(f"{name}.json", _EPOCH)
            text = json.dumps(found, indent=1, sort_keys=True)
            archive.writestr(entry, text, zipfile.ZIP_DEFLATED)
        engine.stop()


if __name__ == "__main__":
    main()
