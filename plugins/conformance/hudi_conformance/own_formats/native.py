"""The suite of Hudi's own format."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from hudi import HudiTableBuilder

from hudi_conformance.formats import FormatUnderTest, TableFormatSuite
from hudi_conformance.formats.under_test import Row


def by_hudi_rs(path: Path) -> Iterable[Row]:
    """The rows of a table as hudi-rs reads them."""
    batches = HudiTableBuilder.from_base_uri(str(path)).build().read()
    return [row for batch in batches for row in batch.to_pylist()]


class NativeSuite(TableFormatSuite):
    """Hudi's own format, read by hudi-rs."""

    format = FormatUnderTest("native", by_hudi_rs)
