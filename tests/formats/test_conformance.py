"""The conformance suite over the formats of the project, and over one that somebody else wrote."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hudi_conformance.formats.capabilities import CapabilityConformance
from hudi_conformance.formats.checks import CHECKS
from hudi_conformance.formats.every_format import FormatConformance
from hudi_conformance.formats.histories import HistoryConformance
from hudi_conformance.formats.recovery import RecoveryConformance
from hudi_conformance.formats.table_services import ServiceConformance
from hudi_conformance.formats.trace import install_formats
from hudi_conformance.formats.two_steps import TwoStepConformance
from hudi_conformance.formats.under_test import FormatUnderTest, TwoStepFormat
from hudi_conformance.own_formats.delta import DeltaSuite
from hudi_conformance.own_formats.iceberg import IcebergSuite
from hudi_conformance.own_formats.native import NativeSuite

Rows = list[Mapping[str, Any]]


def newest_toy(path: Path) -> Path:
    return max((path / ".hoodie" / "toy").glob("*.json"))


def by_toy(path: Path) -> Rows:
    files = json.loads(newest_toy(path).read_text())["files"]
    return [row for file in files for row in pq.ParquetFile(path / file).read().to_pylist()]


def intrude_on_toy(path: Path) -> None:
    last = newest_toy(path)
    state = {**json.loads(last.read_text()), "number": int(last.stem) + 1, "made_by": "somebody"}
    (last.parent / f"{state['number']:08d}.json").write_text(json.dumps(state))


TWO_STEPS = (
    IcebergSuite.format,
    DeltaSuite.format,
    TwoStepFormat(
        "toy", by_toy, lambda path: shutil.rmtree(path / ".hoodie" / "toy"), intrude_on_toy
    ),
    TwoStepFormat(
        "modest", by_toy, lambda path: shutil.rmtree(path / ".hoodie" / "toy"), intrude_on_toy
    ),
)
TOYS = {
    "toy": "tests.formats.toy_format:ToyFormat",
    "modest": "tests.formats.toy_format:ModestFormat",
}
UNDER_TEST = (NativeSuite.format, *TWO_STEPS)
SUITES = (
    FormatConformance,
    CapabilityConformance,
    ServiceConformance,
    RecoveryConformance,
    HistoryConformance,
    TwoStepConformance,
)


@pytest.fixture(autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install the toy formats."""
    folder = tmp_path_factory.mktemp("site")
    install_formats(folder, TOYS, "toy-formats")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        yield


@pytest.fixture(params=UNDER_TEST, ids=lambda one: one.name)
def any_format(request: pytest.FixtureRequest) -> FormatUnderTest:
    found: FormatUnderTest = request.param
    return found


class TestFormats(FormatConformance):
    @pytest.fixture
    def format_under_test(self, any_format: FormatUnderTest) -> FormatUnderTest:
        return any_format


class TestCapabilities(CapabilityConformance):
    @pytest.fixture
    def format_under_test(self, any_format: FormatUnderTest) -> FormatUnderTest:
        return any_format


class TestServices(ServiceConformance):
    @pytest.fixture
    def format_under_test(self, any_format: FormatUnderTest) -> FormatUnderTest:
        return any_format


class TestRecovery(RecoveryConformance):
    @pytest.fixture
    def format_under_test(self, any_format: FormatUnderTest) -> FormatUnderTest:
        return any_format


class TestHistories(HistoryConformance):
    @pytest.fixture
    def format_under_test(self, any_format: FormatUnderTest) -> FormatUnderTest:
        return any_format


class TestTwoSteps(TwoStepConformance):
    @pytest.fixture(params=TWO_STEPS, ids=lambda one: one.name)
    def format_under_test(self, request: pytest.FixtureRequest) -> TwoStepFormat:
        found: TwoStepFormat = request.param
        return found


def test_every_check_is_a_sentence_with_an_id() -> None:
    assert sorted(CHECKS) == [f"F{number:02d}" for number in range(1, len(CHECKS) + 1)]
    for check in CHECKS.values():
        assert re.fullmatch(r"[A-Z].*\.", check.sentence)


def test_every_test_is_a_check() -> None:
    tests = [
        one for suite in SUITES for name, one in vars(suite).items() if name.startswith("test_")
    ]
    assert sorted(str(one.__doc__)[:3] for one in tests) == sorted(CHECKS)
