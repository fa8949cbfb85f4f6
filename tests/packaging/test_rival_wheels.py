"""What goes wrong with plugins that others ship, with real wheels, built and installed here."""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.built_wheels import build_wheels, run

GOOD = '''
"""A table format that somebody else ships."""

from pathlib import Path

from hudi_core.spi import (
    Capability, FileIndex, FormatCapabilities, FormatCommit, Instant, Lineage, MetaClientView,
    Publication, TableFormat, TimelineView, fence,
)
from hudi_core.spi.files import table_lister

if (trace := Path(__file__).with_name("imported")).parent.exists():
    trace.touch()


class Factory:
    def active_timeline(self, meta_client: MetaClientView) -> TimelineView:
        return fence(meta_client.timeline(), [Lineage()])

    def create(self, meta_client: MetaClientView) -> FileIndex:
        return table_lister(meta_client)


class Format(TableFormat):
    spi_version = "1.0"

    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities.of(Capability.COPY_ON_WRITE)

    def create(self) -> FormatCommit:
        return FormatCommit("0")

    def open(self) -> FormatCommit:
        return FormatCommit("0")

    def find_publication(self, instant: Instant) -> Publication | None:
        return None

    def get_timeline_factory(self) -> Factory:
        return Factory()

    def get_metadata_factory(self) -> Factory:
        return Factory()

    def complete_write(self, instant: Instant) -> FormatCommit:
        return FormatCommit("1", details={"instant": instant.requested_time})

    def before_clean(self) -> None: ...

    def complete_clean(self) -> FormatCommit:
        return FormatCommit("2")

    def before_rollback(self) -> None: ...

    def complete_rollback(self) -> FormatCommit:
        return FormatCommit("3")
'''
OPENING = """
    def create(self) -> FormatCommit:
        return FormatCommit("0")

    def open(self) -> FormatCommit:
        return FormatCommit("0")
"""
FORMER = """
    def initialize(self, create: bool) -> FormatCommit:
        return FormatCommit("0")
"""
HEAD, HOOKS = GOOD.split('class Format(TableFormat):\n    spi_version = "1.0"\n')
OLDER = (
    HEAD.replace("TableFormat, ", "hookimpl, FileLister, TableMetaClient, Timeline, ")
    .replace("    Publication,", "    Publication, read_footer, table_lister,")
    .replace("from hudi_core.spi.files import table_lister\n", "")
    .replace("-> FileIndex", "-> FileLister")
    + "class Format:"
    + HOOKS.replace(OPENING, FORMER).replace("    def ", "    @hookimpl\n    def ")
)
"""As it was written for the contract that had no version, with the names that it had."""
MOVED = {
    "FileLister": "FileIndex has taken its place",
    "TableMetaClient": "what hooks get is a MetaClientView",
    "Timeline": "take TimelineView",
    "read_footer": "from hudi_core.spi.files import read_footer",
    "table_lister": "from hudi_core.spi.files import table_lister",
}
FORGETFUL = OLDER.replace("    @hookimpl\n    def complete_clean", "    def complete_clean")
LATER = GOOD.replace('"1.0"', '"1.9"').replace(
    "def complete_write(self, instant: Instant)",
    "def complete_wirte(self): ...\n\n    def complete_write(self, instant, wait_s=2.5)",
)
"""As it may be written for a contract to come."""
MAJOR = GOOD.replace('"1.0"', '"2.0"')
BROKEN = "import a_library_that_nobody_installed\n"
MEDDLING = """
from hudi_core.spi import FormatCommit, hookimpl


class Observer:
    @hookimpl(wrapper=True)
    def complete_write(self):
        yield
        raise SystemError("the observer is unwell")
        return FormatCommit("mine")
"""
FORMAT_GROUP, OBSERVERS = "hudi.table_formats", "hudi.observers"


@dataclass(frozen=True)
class Shipped:
    """A distribution of one module."""

    distribution: str
    code: str
    entry_points: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def module(self) -> str:
        return self.distribution.replace("-", "_")

    def write(self, folder: Path) -> None:
        """Write the project into a new folder."""
        groups = "".join(
            f'[project.entry-points."{group}"]\n'
            + "".join(f'"{name}" = "{self.module}:{target}"\n' for name, target in points.items())
            for group, points in self.entry_points.items()
        )
        folder.mkdir()
        (folder / f"{self.module}.py").write_text(self.code)
        (folder / "pyproject.toml").write_text(
            '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
            f'[project]\nname = "{self.distribution}"\nversion = "1.0"\n{groups}'
            f'[tool.setuptools]\npy-modules = ["{self.module}"]\n'
        )


WHEELS = (
    Shipped("hudi-rival-one", GOOD, {FORMAT_GROUP: {"lake": "Format"}}),
    Shipped("hudi-rival-two", GOOD, {FORMAT_GROUP: {"Lake": "Format", "native": "Format"}}),
    Shipped("hudi-broken-format", BROKEN, {FORMAT_GROUP: {"broken": "Format"}}),
    Shipped("hudi-forgetful-format", FORGETFUL, {FORMAT_GROUP: {"forgetful": "Format"}}),
    Shipped("hudi-older-format", OLDER, {FORMAT_GROUP: {"older": "Format"}}),
    Shipped("hudi-later-format", LATER, {FORMAT_GROUP: {"later": "Format"}}),
    Shipped("hudi-major-format", MAJOR, {FORMAT_GROUP: {"major": "Format"}}),
    Shipped("hudi-meddling", MEDDLING, {OBSERVERS: {"meddling": "Observer"}}),
)

Install = Callable[..., Path]
Answer = dict[str, Any]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("rivals")
    for one in WHEELS:
        one.write(root / one.distribution)
    names = [one.distribution for one in WHEELS]
    return dict(zip(names, build_wheels(*(root / name for name in names)), strict=True))


@pytest.fixture(scope="module")
def install(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Installs some of the wheels into a folder of their own, beside the project."""

    def into_a_folder(*distributions: str) -> Path:
        target = tmp_path_factory.mktemp("site")
        for name in distributions:  # of wheels without scripts and dependencies pip does no more
            with zipfile.ZipFile(wheels[name]) as wheel:
                wheel.extractall(target)
        return target

    return into_a_folder


LOAD = """
import json, logging, sys, warnings
from hudi_core.errors import PluginError
from hudi_core.model.commit import CommitMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
logging.basicConfig(stream=sys.stderr)
registry = FormatRegistry()
told = {"names": registry.names()}
done = Instant("20260101000000000", Action.COMMIT, State.COMPLETED, "20260101000000001")
for name in sys.argv[1:]:
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            host = FormatHost.load(registry, name)
            receipt = host.complete_write(None, CommitMetadata(), done)
            if name == "older":
                host.open(None)
        told[name] = {"version": receipt.version, "details": dict(receipt.details)}
        if warned:
            told[name]["warned"] = [f"{one.category.__name__}: {one.message}" for one in warned]
    except PluginError as error:
        told[name] = {"error": type(error).__name__, "text": str(error)}
print(json.dumps(told))
"""


def load(path: Path, *names: str) -> Answer:
    """Load formats in a process that has ``path`` on its path; return what became of them."""
    command = (sys.executable, "-W", "error", "-c", LOAD, *names)
    told: Answer = json.loads(run(*command, more={"PYTHONPATH": str(path)}))
    return told


@pytest.fixture(scope="module")
def second_alone(install: Install) -> Answer:
    return load(install("hudi-rival-two"), "LAKE", "native")


@pytest.fixture(scope="module")
def faulty(install: Install) -> Answer:
    # moved names are warned of once in a process
    names = ("broken", "older", "later", "major", "forgetful")
    return load(install(*(f"hudi-{name}-format" for name in names)), *names, "native", "paimon")


def test_two_wheels_claim_one_format(install: Install) -> None:
    told = load(install("hudi-rival-one", "hudi-rival-two"), "lake", "native")
    assert told["lake"] == {
        "error": "PluginConflictError",
        "text": "The table format 'lake' is provided by several distributions: hudi-rival-one, "
        "hudi-rival-two. Uninstall all but one of them.",
    }
    assert {"lake", "native"} <= set(told["names"])
    assert told["native"]["version"] == "20260101000000001"


def test_one_of_them_alone_works(second_alone: Answer) -> None:
    assert second_alone["LAKE"] == {"version": "1", "details": {"instant": "20260101000000000"}}


def test_a_wheel_is_imported_only_when_a_table_names_it(install: Install) -> None:
    path = install("hudi-rival-one")
    assert "lake" in load(path, "native")["names"]
    assert not (path / "imported").exists()
    load(path, "lake")
    assert (path / "imported").exists()


def test_a_wheel_whose_import_fails(faulty: Answer) -> None:
    assert faulty["broken"] == {
        "error": "PluginLoadError",
        "text": "The table format 'broken' of distribution hudi-broken-format cannot be loaded: "
        "ModuleNotFoundError: No module named 'a_library_that_nobody_installed'. "
        "Reinstall or upgrade hudi-broken-format.",
    }
    assert "version" in faulty["native"]


def test_a_wheel_with_a_forgotten_marker(faulty: Answer) -> None:
    assert faulty["forgetful"] == {
        "error": "PluginContractError",
        "text": "The table format 'forgetful' breaks its contract: complete_clean is named like a "
        "hook, but not marked with @hookimpl. Report it to the plugin's authors; "
        "hudi_core.hookspecs says what each hook owes.",
    }


def test_wheels_of_other_contracts(faulty: Answer) -> None:
    for name, said in (
        ("older", "initialize became create, open and"),
        ("later", "complete_wirte"),
    ):
        assert faulty[name]["version"] == "1"
        [*moved, warned] = faulty[name]["warned"]
        assert len(moved) == (len(MOVED) if name == "older" else 0)
        for one in MOVED if moved else ():
            [said_of_it] = [text for text in moved if f" {one} of hudi_core.spi" in text]
            assert MOVED[one] in said_of_it
        assert warned.startswith(
            f"PluginContractWarning: The plugin {name!r} is written for contract"
        )
        assert said in warned
    assert faulty["major"]["error"] == "PluginContractError"
    assert "contract 2.0 of table formats and needs hudi-core >=" in faulty["major"]["text"]


def test_the_name_of_the_default_format_cannot_be_taken(second_alone: Answer) -> None:
    """Tables of the default format stay what they are, whatever is installed beside."""
    assert second_alone["native"]["version"] == "20260101000000001"
    [warned] = second_alone["native"]["warned"]
    assert "The distribution hudi-rival-two registers a table format by the name 'native'" in warned
    assert "Uninstall hudi-rival-two" in warned


def test_a_format_that_nobody_ships(faulty: Answer) -> None:
    assert faulty["paimon"]["error"] == "UnknownTableFormatError"
    assert "broken, delta, forgetful, iceberg, later, major," in faulty["paimon"]["text"]
    assert "by custom it is called hudi-paimon-format" in faulty["paimon"]["text"]


def test_a_wheel_with_an_observer_that_fails(install: Install) -> None:
    told = load(install("hudi-rival-one", "hudi-meddling"), "lake", "native")
    assert told["lake"]["version"] == "1"
    assert told["native"]["version"] == "20260101000000001"
