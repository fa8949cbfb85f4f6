"""Pictures of a timeline's page and of the documentation: ``make pictures``.

Debian's Chromium (``apt install chromium``) opens the pages as a person would; the pictures go to
``build/pictures``, to be looked at. Ends with 1 where a picture has hardly a colour: a blank page.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Final

import pyarrow as pa

import hudi_core as hudi

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / "build" / "pictures"
SITE: Final = ROOT / "build" / "site"
PAGES: Final = ("index.html", "concepts.html", "command_line.html")
FEWEST_BYTES: Final = 400
"""Of the distinct runs of a blank picture there are fewer."""


def main() -> int:
    """Take the pictures; return the exit status."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print("no Chromium here: apt install chromium", file=sys.stderr)
        return 1
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    blank = []
    for page in (*_timelines(), *(SITE / name for name in PAGES)):
        picture = FOLDER / f"{page.stem}.png"
        _take(browser, page, picture)
        print(picture.relative_to(ROOT))
        if _variety(picture.read_bytes()) < FEWEST_BYTES:
            blank.append(picture.name)
    if blank:
        print(f"blank: {', '.join(blank)}", file=sys.stderr)
    return bool(blank)


def _timelines() -> list[Path]:
    """Pages of tables that lived for a while."""
    rows = pa.table({"id": list(range(400)), "city": ["Oslo", "Rome"] * 200, "fare": [1.5] * 400})
    limits = {
        "hoodie.keep.min.commits": "4",
        "hoodie.keep.max.commits": "8",
        "hoodie.cleaner.commits.retained": "3",
    }
    pages = []
    for name in ("native", "iceberg", "delta"):
        path = str(FOLDER / f"table_{name}")
        table = hudi.Table.create(
            path, rows, record_key="id", partition_by="city", format=name, options=limits
        )
        for count in range(1, 11):
            table.upsert(rows.slice(0, 40 * count))
        table.savepoint()
        table.rollback(table.delete(rows.slice(0, 5)).instant)
        table.cluster(sort_by="fare")
        page = FOLDER / f"timeline_{name}.html"
        program = str(Path(sys.executable).with_name("hudi"))
        command = [program, "timeline", path, "--all", "--html", str(page)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        pages.append(page)
    return pages


def _take(browser: str, page: Path, picture: Path) -> None:
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1500,1100"]
    command += [f"--screenshot={picture}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True, timeout=120)


def _variety(picture: bytes) -> int:
    """How many different runs of eight bytes the pixels of a PNG have."""
    data, place = b"", 8
    while place < len(picture):
        size = int.from_bytes(picture[place : place + 4])
        if picture[place + 4 : place + 8] == b"IDAT":
            data += picture[place + 8 : place + 8 + size]
        place += 12 + size
    pixels = zlib.decompress(data)
    return len({pixels[at : at + 8] for at in range(0, len(pixels) - 8, 8)})


if __name__ == "__main__":
    sys.exit(main())
