"""The wheels of the repository, and environments that have nothing else."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from tempfile import TemporaryDirectory

from filelock import FileLock
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
LEFT_BY_TOOLS = shutil.ignore_patterns("__pycache__", "build", "dist", "*.egg-info", ".*_cache")
BUILD = """
import importlib, os, sys, tarfile, tomllib

how, *folders = sys.argv[1:]
for folder in folders:
    os.chdir(folder)
    output = os.path.abspath("../dist" if how == "sdist" else "dist")
    with open("pyproject.toml", "rb") as file:
        backend = importlib.import_module(tomllib.load(file)["build-system"]["build-backend"])
    if how == "sdist":
        name = backend.build_sdist(output)
        with tarfile.open(os.path.join(output, name)) as archive:
            archive.extractall("..", filter="data")
        os.chdir(os.path.join("..", name.removesuffix(".tar.gz")))
    backend.build_wheel(output)
"""
"""Builds wheels in one process, where a frontend would start four for each."""


@dataclass(frozen=True)
class Project:
    """One wheel of the repository: its folder, and the import packages that are in it."""

    folder: str
    packages: tuple[str, ...]

    def files(self) -> set[str]:
        """Name every file of the packages, as the wheel should name it."""
        return {
            path.relative_to(self.home).as_posix()
            for package in self.packages
            for path in (self.home / package).rglob("*")
            if path.is_file() and "__pycache__" not in path.parts and not self._stays_out(path)
        }

    @property
    def home(self) -> Path:
        """The folder that holds the packages."""
        packages_inside = (REPOSITORY / self.folder / self.packages[0]).is_dir()
        return REPOSITORY / self.folder if packages_inside else REPOSITORY

    def _stays_out(self, path: Path) -> bool:
        # a folder that is project and package at once also holds what describes the project
        about = {"pyproject.toml", "README.md", "LICENSE"}
        is_about = path.name in about and path.parent == REPOSITORY / self.folder
        return is_about or any(part.endswith(".egg-info") for part in path.parts)


def core_packages() -> tuple[str, ...]:
    wanted = ("hudi_core", "native_format", "pyspark_hudi", "pyspark_org_apache_hudi")
    return tuple(name for name in wanted if (REPOSITORY / name).is_dir())


CORE = "hudi-core"
PROJECTS = {
    CORE: Project(".", core_packages()),
    "hudi-iceberg-format": Project("iceberg_format", ("iceberg_format",)),
    "hudi-delta-format": Project("delta_format", ("delta_format",)),
    "hudi-conformance": Project("plugins/conformance", ("hudi_conformance",)),
    "hudi-sql-format": Project("plugins/sql_format", ("hudi_sql_format",)),
}


def build_wheel(project: Project, folder: Path) -> Path:
    """Build a wheel through its source distribution, from a copy that nothing was built in."""
    source = folder / "source"
    if project.folder == ".":
        source.mkdir()
        for file in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(REPOSITORY / file, source)
        for package in project.packages:
            shutil.copytree(REPOSITORY / package, source / package, ignore=LEFT_BY_TOOLS)
    else:
        shutil.copytree(REPOSITORY / project.folder, source, ignore=LEFT_BY_TOOLS)
    run(sys.executable, "-c", BUILD, "sdist", source)
    [wheel] = (folder / "dist").glob("*.whl")
    return wheel


def build_wheels(*folders: Path) -> list[Path]:
    """Build the wheels of projects into their own folders."""
    run(sys.executable, "-c", BUILD, "wheel", *folders)
    return [wheel for folder in folders for wheel in (folder / "dist").glob("*.whl")]


class Wheels(Mapping[str, Path]):
    """The project's wheels by name, each built once, by the worker of a run that asks first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __getitem__(self, name: str) -> Path:
        home = self._folder / name
        with FileLock(self._folder / f"{name}.lock"):
            if not home.is_dir():
                with TemporaryDirectory(dir=self._folder) as scratch:
                    wheel = build_wheel(PROJECTS[name], Path(scratch))
                    wheel.parent.rename(home)
        [built] = home.glob("*.whl")
        return built

    def core_alone(self) -> CleanEnvironment:
        """Give the environment with the core's wheel, which pip made once; tests change nothing."""
        environment, made = CleanEnvironment(self._folder / "core"), self._folder / "core.installed"
        with FileLock(self._folder / "core.lock"):
            if not made.exists():
                new_environment(environment.home).install(self[CORE])
                made.touch()
        return environment

    def with_core(self, folder: Path, extra: str = "") -> CleanEnvironment:
        """Make an environment from a copy of what pip installed and compiled in ``core_alone``."""
        known = self.core_alone().site_packages
        environment = new_environment(folder)
        shutil.copytree(known, environment.site_packages, symlinks=True, dirs_exist_ok=True)
        environment.link(declared(self[CORE], extra))
        return environment

    def __iter__(self) -> Iterator[str]:
        return iter(PROJECTS)

    def __len__(self) -> int:
        return len(PROJECTS)


@dataclass(frozen=True)
class CleanEnvironment:
    """A virtual environment that cannot see the source tree."""

    home: Path

    @property
    def python(self) -> Path:
        return self.home / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        [found] = self.home.glob("lib/python*/site-packages")
        return found

    def install(self, wheel: Path, extra: str = "") -> None:
        """Install the wheel alone; link the packages it declares from this environment.

        Nothing is downloaded, and what the wheel does not declare cannot be imported.
        """
        options = ("--no-deps", "--no-index", "--quiet")
        run(sys.executable, "-m", "pip", "--python", self.python, "install", *options, wheel)
        self.link(declared(wheel, extra))

    def link(self, distributions: Iterable[importlib.metadata.Distribution]) -> None:
        """Make packages of this environment importable."""
        for distribution in distributions:
            for top in top_level_files(distribution):
                link = self.site_packages / top.name
                if not link.exists():
                    link.symlink_to(top)

    def python_of_spark(self) -> Path:
        """Make the Python for tasks: without Spark's archives, which each would compile again."""
        script = self.home / "bin" / "python_of_spark"
        script.write_text(f'#!/bin/sh\nunset PYTHONPATH\nexec {self.python} "$@"\n')
        script.chmod(0o755)
        return script

    def run(self, code: str, *arguments: str) -> str:
        """Run Python code outside the source tree; return what it printed."""
        return run(self.python, "-I", "-W", "error", "-c", code, *arguments, cwd=self.home)


def new_environment(folder: Path) -> CleanEnvironment:
    venv.create(folder, with_pip=False, symlinks=True)
    return CleanEnvironment(folder)


def run(
    *command: str | Path, cwd: Path | None = None, more: Mapping[str, str] | None = None
) -> str:
    """Run a command without the tree on its path; return what it printed.

    ``more`` are variables of its environment.
    """
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTHONHOME"}}
    environment |= more or {}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def dist_info(wheel: Path, file: str) -> bytes | None:
    """Return a file of the wheel's own description."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.partition("/")[2] == file and ".dist-info/" in name:
                return archive.read(name)
    return None


def declared(
    wheel: Path, extra: str = "", own: Mapping[str, Path] | None = None
) -> list[importlib.metadata.Distribution]:
    """Return every distribution the wheel requires, directly or not, but for the project's own.

    What wheels of the project need in turn is among them for the wheels that ``own`` has.
    """
    seen: set[tuple[str, frozenset[str]]] = set()
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [(text, frozenset({extra})) for text in requirements(wheel)]
    while waiting:
        text, extras = waiting.pop()
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        wanted = frozenset(requirement.extras) | {""}
        marker = requirement.marker
        applies = marker is None or any(marker.evaluate({"extra": one}) for one in extras)
        if not applies or (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        if name in PROJECTS:
            more = requirements(own[name]) if own and name in own else []
        else:
            found[name] = importlib.metadata.distribution(name)
            assert requirement.specifier.contains(found[name].version, prereleases=True)
            more = found[name].requires or []
        waiting += [(one, wanted) for one in more]
    return list(found.values())


def about(wheel: Path) -> Message:
    """Return what the wheel says of itself."""
    metadata = dist_info(wheel, "METADATA")
    assert metadata is not None
    return message_from_bytes(metadata)


def requirements(wheel: Path) -> list[str]:
    """Return what the wheel requires, and its extras."""
    return [str(one) for one in about(wheel).get_all("Requires-Dist", [])]


def top_level_files(distribution: importlib.metadata.Distribution) -> Iterator[Path]:
    """Yield the files and folders that the distribution put beside each other in site-packages."""
    for top in {file.parts[0] for file in distribution.files or []} - {"..", "__pycache__"}:
        yield Path(str(distribution.locate_file(top)))
