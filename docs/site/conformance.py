"""The page of what each format came to: ``make conformance``.

Runs the registered suites of the formats that are installed, and puts the matrix on the page.
"""

from __future__ import annotations

from pathlib import Path

from hudi_conformance.formats.registered import registered
from hudi_conformance.formats.report import matrix, run_format

PAGE = Path(__file__).resolve().parents[1] / "conformance.md"
BEGIN, END = "<!-- matrix -->", "<!-- end of matrix -->"


def main() -> None:
    """Write the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    table = matrix(run_format(name).to_document() for name in registered())
    PAGE.write_text(f"{before}{BEGIN}\n\n{table}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
