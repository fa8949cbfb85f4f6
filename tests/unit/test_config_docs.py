"""The reference of all options is fresh and says everything."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hudi_core.config.docs import deviations, main, render
from hudi_core.config.option_warnings import ALL_KEYS, known_names
from hudi_core.config.options import ConfigKey
from hudi_core.plugin import option_page

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "configuration.md").read_text(encoding="utf-8")


def test_the_reference_is_fresh() -> None:
    advice = "run `python -m hudi_core.config.docs` in the repository's root"
    assert render(PAGE) == PAGE, advice
    assert (DOCS / "deviations.md").read_text(encoding="utf-8").endswith(f"\n\n{deviations()}"), (
        advice
    )


def test_the_reference_of_the_formats_is_fresh() -> None:
    advice = "run `python -m hudi_core.plugin.option_page` in the repository's root"
    assert (DOCS / "formats.md").read_text(encoding="utf-8") == option_page.render(), advice


def test_every_name_is_listed() -> None:
    assert not [name for name in known_names() if f"`{name}`" not in PAGE]


@pytest.mark.parametrize("key", ALL_KEYS, ids=lambda key: key.key)
def test_deviations_are_listed_with_their_reasons(key: ConfigKey[object]) -> None:
    listed = f"| `{key.key}` |" in deviations()
    assert listed is (key.hudi_default is not None)
    if key.reason:
        assert key.reason in deviations()


@pytest.mark.parametrize(
    "name",
    [
        "hoodie.write.table.version",
        "hoodie.table.timeline.timezone",
        "hoodie.parquet.compression.codec",
        "parquet.compression.codec.zstd.level",
        "hoodie.index.bloom.num_entries",
        "hoodie.fs.fsync",
        "hoodie.write.lock.provider",
    ],
)
def test_the_known_deviations_are_among_them(name: str) -> None:
    assert f"`{name}`" in deviations()


def test_tables_are_well_formed() -> None:
    for block in PAGE.split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        widths = {line.replace("\\|", "").count("|") for line in rows}
        assert len(widths) <= 1, rows[0]


def test_the_generator_keeps_what_is_written_by_hand(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "deviations.md").write_text(
        "# By hand\n\n## Defaults of options\nold\n", encoding="utf-8"
    )
    without_lists = "".join(
        line for line in PAGE.splitlines(keepends=True) if not line.startswith(("|", "**"))
    )
    (docs / "configuration.md").write_text(without_lists, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "hudi_core.config.docs"], cwd=tmp_path, check=True)
    assert (docs / "configuration.md").read_text(encoding="utf-8") == PAGE
    expected = f"# By hand\n\n{deviations()}"
    assert (docs / "deviations.md").read_text(encoding="utf-8") == expected
    assert main([str(docs)]) == 0
    assert (docs / "deviations.md").read_text(encoding="utf-8") == expected
