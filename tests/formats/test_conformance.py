"""The conformance suite over the formats of the project, and over one that somebody else wrote."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq
import pytest
from hudi import HudiFileGroupReader
from hudi_conformance.formats import histories
from hudi_conformance.formats.capabilities import CapabilityConformance
from hudi_conformance.formats.checks import CHECKS, check_of
from hudi_conformance.formats.deletion_vectors import DeletionVectorConformance
from hudi_conformance.formats.every_format import FormatConformance
from hudi_conformance.formats.filters import FilterConformance
from hudi_conformance.formats.histories import HistoryConformance
from hudi_conformance.formats.recovery import RecoveryConformance
from hudi_conformance.formats.table_services import ServiceConformance
from hudi_conformance.formats.tables import FAST, create, rows
from hudi_conformance.formats.trace import TRACE, install_formats
from hudi_conformance.formats.two_steps import TwoStepConformance
from hudi_conformance.formats.under_test import FormatUnderTest, TwoStepFormat
from hudi_conformance.own_formats.delta import DeltaSuite
from hudi_conformance.own_formats.iceberg import IcebergSuite
from hudi_conformance.own_formats.native import NativeSuite
from hudi_conformance.pytest_plugin import REFUSED

import hudi_core as hudi
from tests.formats import toy_format as toy
from tests.formats.toy_services import is_log
from tests.samples import IS_WHOLE

Rows = list[Mapping[str, Any]]


def newest_toy(path: Path) -> Path:
    return max((path / ".hoodie" / "toy").glob("*.json"))


def by_toy(path: Path) -> Rows:
    """The live rows of the files that the format names; hudi-rs merges logs with base files."""
    files: dict[str, list[int]] = json.loads(newest_toy(path).read_text())["files"]
    logs = [one for one in files if is_log(one)]
    merged = {toy.group_of(one) for one in logs}
    bases = [one for one in files if not is_log(one)]
    found = [
        row
        for one in bases
        if toy.group_of(one) not in merged
        for at, row in enumerate(pq.ParquetFile(path / one).read().to_pylist())
        if at not in files[one]
    ]
    reader = HudiFileGroupReader(str(path))
    for base in (one for one in bases if toy.group_of(one) in merged):
        own = [one for one in logs if toy.group_of(one) == toy.group_of(base)]
        found += reader.read_file_slice_from_paths(base, own).to_pylist()
    return found


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
    DeletionVectorConformance,
    FilterConformance,
    RecoveryConformance,
    HistoryConformance,
    TwoStepConformance,
)
ASK_FOR_MORE: Final = {
    *("F01", "F04", "F10", "F12", "F23", "F24", "F35", "F36", "F37", "F38"),
    *("F39", "F43", "F45", "F46", "F49", "F50", "F51", "F53", "F54", "F58", "F63"),
    *("F64", "F65", "F66", "F67", "F68", "F69"),
}
"""Checks in which the modest format refuses something; in all others it is the toy format."""
IN_ONE_PLACE: Final = {"iceberg"}
"""Formats whose tables cannot be copied: their metadata has the whole paths of files."""
NewTable = Callable[[FormatUnderTest, Path], hudi.Table]


def chosen(test: object, formats: Sequence[FormatUnderTest]) -> list[FormatUnderTest]:
    """The formats that a check is run over; all of them in a campaign."""
    check = check_of(test)
    asks = IS_WHOLE or (check is not None and check.id in ASK_FOR_MORE)
    return [one for one in formats if asks or one.name != "modest"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run every check over the formats that it is for."""
    if metafunc.cls is not None:
        formats = TWO_STEPS if metafunc.cls is TestTwoSteps else UNDER_TEST
        metafunc.parametrize(
            "format_under_test",
            chosen(metafunc.function, formats),
            indirect=True,
            ids=lambda one: one.name,
        )


@pytest.fixture(scope="module", autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Install the toy formats."""
    folder = tmp_path_factory.mktemp("site")
    install_formats(folder, TOYS, "toy-formats")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        yield


@pytest.fixture(autouse=True)
def _fewer_histories(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw one random history less of each format, but in a campaign."""
    if not IS_WHOLE:
        monkeypatch.setattr(histories, "FEW", 2)


@pytest.fixture(scope="module")
def new_table(installed: None, tmp_path_factory: pytest.TempPathFactory) -> NewTable:
    """What gives each test a table of its own: a copy of one that is made once for a format."""
    home = tmp_path_factory.mktemp("made")

    def make(format_under_test: FormatUnderTest, path: Path) -> hudi.Table:
        made = create(path, format_under_test)
        made.insert(rows(0, 1, 2, 3, 4))
        return made

    def get(format_under_test: FormatUnderTest, path: Path) -> hudi.Table:
        if format_under_test.name in IN_ONE_PLACE:
            return make(format_under_test, path)
        first = home / format_under_test.name
        if not first.exists():
            make(format_under_test, first)
        shutil.copytree(first, path, copy_function=shutil.copyfile)
        return hudi.Table.open(path, {**FAST, **format_under_test.options})

    return get


class OverChosen:
    """What is the same for all suites here."""

    @pytest.fixture
    def format_under_test(self, request: pytest.FixtureRequest) -> Iterator[FormatUnderTest]:
        found: FormatUnderTest = request.param
        yield found
        check = check_of(request.function)
        if found.name == "modest" and (REFUSED, "true") in request.node.user_properties:
            assert check is not None
            assert check.id in ASK_FOR_MORE

    @pytest.fixture
    def table(
        self, path: Path, format_under_test: FormatUnderTest, new_table: NewTable
    ) -> hudi.Table:
        made = new_table(format_under_test, path)
        TRACE.calls.clear()
        return made


class TestFormats(OverChosen, FormatConformance):
    pass


class TestCapabilities(OverChosen, CapabilityConformance):
    pass


class TestServices(OverChosen, ServiceConformance):
    pass


class TestDeletionVectors(OverChosen, DeletionVectorConformance):
    pass


class TestFilters(OverChosen, FilterConformance):
    pass


class TestRecovery(OverChosen, RecoveryConformance):
    pass


class TestHistories(OverChosen, HistoryConformance):
    pass


class TestTwoSteps(OverChosen, TwoStepConformance):
    pass


def test_every_check_is_a_sentence_with_an_id() -> None:
    assert sorted(CHECKS) == [f"F{number:02d}" for number in range(1, len(CHECKS) + 1)]
    for check in CHECKS.values():
        assert re.fullmatch(r"[A-Z].*\.", check.sentence)


def test_every_test_is_a_check() -> None:
    tests = [
        one for suite in SUITES for name, one in vars(suite).items() if name.startswith("test_")
    ]
    assert sorted(str(one.__doc__)[:3] for one in tests) == sorted(CHECKS)
