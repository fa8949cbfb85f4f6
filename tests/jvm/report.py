"""What the judges found, case by case, and the page of the docs that keeps it.

A run writes the sections of the files whose cases it began and ended, all of them; the other
sections stay as they were.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest

from tests.jvm.engines import KINDS, Kind

HERE: Final = Path(__file__).resolve().parent
PAGE: Final = HERE.parent.parent / "docs" / "interop.md"
PATTERN: Final = "*_cases.py"
PATIENCE_S: Final = 900
"""Seconds after which a case is given up, and with it the session of its engine."""
OWN_PACKAGES: Final = ("hudi-core", "pyarrow", "pyiceberg", "deltalake", "hudi")

_VERSIONS: Final = "versions"
_PARTIAL: Final = "partial"

RIGHT: Final = "right"
WRONG: Final = "**wrong**"
OWN: Final = "its own failure"


class OwnFailureError(Exception):
    """An engine is wrong about our table, and in the same way about one that it made itself."""


def is_worker(config: pytest.Config) -> bool:
    """Whether another process collects what becomes of the cases."""
    return hasattr(config, "workerinput")


def own_failure(reason: str) -> pytest.MarkDecorator:
    """Mark of a case in which an engine fails whoever wrote the table.

    The case raises :class:`OwnFailureError` once it has seen the engine fail on its own table as
    well. When the engine no longer does, the case is red.
    """
    return pytest.mark.xfail(raises=OwnFailureError, strict=True, reason=reason)


@dataclass
class Report:
    """A plugin of pytest that keeps what became of each case.

    ``outcomes``: by node id, relative to this folder: ``right``, ``wrong``, or why the engine's own
    failure is expected. ``versions``: what the engines ran on, by their names.
    """

    expected: list[str] = field(default_factory=list)
    outcomes: dict[str, str] = field(default_factory=dict)
    versions: dict[str, Mapping[str, str]] = field(default_factory=dict)
    _partial: set[str] = field(default_factory=set)

    def pytest_report_header(self) -> list[str]:
        """Versions of the judges."""
        return [f"{kind.name}: {kind.version}" for kind in KINDS]

    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Remember which cases there are, where processes of their own run them."""
        self.expected = [case_name(node_id) for node_id in ids]

    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a process has found that ran cases; one that died has nothing."""
        found = getattr(node, "workeroutput", {})
        self.versions |= found.get(_VERSIONS, {})
        self._partial |= set(found.get(_PARTIAL, ()))

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Give each case its time."""
        for item in items:
            item.add_marker(pytest.mark.timeout(PATIENCE_S))

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Remember the files of which not every case is run."""
        self._partial |= {_file(case_name(item.nodeid)) for item in items}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Remember which cases there are."""
        self.expected = [case_name(item.nodeid) for item in session.items]
        named = (case_name(one) for one in session.config.args if "::" in one)
        self._partial |= {_file(name) for name in named}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember what became of a case; a failure of its set-up is one.

        A case during which its process died is run again, and stays wrong.
        """
        name = case_name(report.nodeid)
        if report.failed:
            self.outcomes[name] = WRONG
        elif report.when == "call":
            self.outcomes.setdefault(name, getattr(report, "wasxfail", RIGHT))

    @property
    def unfinished(self) -> list[str]:
        """Cases that have no outcome."""
        return [name for name in self.expected if name not in self.outcomes]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the sections of the files that were run whole; a case without an outcome is red."""
        if session.config.option.collectonly:
            return
        if is_worker(session.config):
            session.config.workeroutput |= {  # type: ignore[attr-defined]
                _VERSIONS: self.versions,
                _PARTIAL: sorted(self._partial),
            }
            return
        if self.unfinished and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        partial = self._partial | {_file(name) for name in self.unfinished}
        whole = {
            name: outcome for name, outcome in self.outcomes.items() if _file(name) not in partial
        }
        if whole:
            before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
            PAGE.write_text(page(whole, self.versions, before), encoding="utf-8")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the cases that did not come to their end."""
        for name in self.unfinished:
            terminalreporter.write_line(f"UNFINISHED {name}", red=True)


@dataclass(frozen=True)
class Line:
    """A line of the page: cases of one function with one outcome.

    ``file``, ``function``: where the cases are. ``count``: how many they are. ``outcome``: what
    became of them.
    """

    file: str
    function: str
    count: int
    outcome: str


def page(
    outcomes: Mapping[str, str], versions: Mapping[str, Mapping[str, str]], before: str = ""
) -> str:
    """The page that tells what a run found.

    ``outcomes``: of all cases of some files. ``versions``: what the engines ran on, those that ran.
    ``before``: the page as it was, which keeps the sections of other files.
    """
    kept = {
        found[1]: f"## {text.strip()}"
        for text in before.split("\n## ")
        if (found := _OF_FILE.search(text))
    }
    run = {_file(name) for name in outcomes}
    sections = [
        _section(path, outcomes) if path.name in run else kept[path.name]
        for path in sorted(HERE.glob(PATTERN))
        if path.name in run or path.name in kept
    ]
    files = [path.name for path in sorted(HERE.glob(PATTERN))]
    absent = [name for name in files if name not in {*run, *kept}]
    text = "\n\n".join(sections)
    lines = lines_of(text)
    total, wrong, own = (
        sum(one.count for one in lines if one.outcome.startswith(start))
        for start in ("", WRONG, OWN)
    )
    head = [
        "# Judged by Hudi-Spark, Iceberg-Spark and Delta-Spark",
        "",
        "Spark with the formats' own runtimes reads what this project writes, writes into its",
        "tables, and makes tables that this project reads and writes. `make interop` runs all",
        "cases and writes this page; `make interop ARGS='-k skipping'` runs those whose file, name",
        "or variant fits. It needs Maven and Java 17.",
        "",
        f"{total} cases in {len(files) - len(absent)} of {len(files)} files: {total - wrong - own}",
        f"right, {wrong} wrong, and {own} in which an engine",
        "fails by itself: on a table that it made itself, and in the same way, as the case shows.",
        "",
        "| judge | runs on |",
        "| --- | --- |",
        *(_judge(kind, versions.get(kind.name, {}), before) for kind in KINDS),
    ]
    ours = ", ".join(f"{name} {version(name)}" for name in OWN_PACKAGES)
    head.append(f"| this project | {ours} |")
    if absent:
        names = ", ".join(f"`{name}`" for name in absent)
        head += ["", f"Nothing is recorded here yet of the cases of {names}."]
    return "\n".join([*head, "", text]) + "\n"


_OF_FILE: Final = re.compile(r"^Cases of `(\S+)`:$", re.MULTILINE)


def _judge(kind: Kind, found: Mapping[str, str], before: str) -> str:
    start = f"| {kind.name}: `{kind.version}` |"
    if not found:
        return next((line for line in before.splitlines() if line.startswith(start)), f"{start} |")
    return f"{start} {', '.join(f'{name} {number}' for name, number in found.items())} |"


def lines_of(text: str) -> list[Line]:
    """The lines of a page."""
    found = []
    file = ""
    for line in text.splitlines():
        if named := _OF_FILE.match(line):
            file = named[1]
        elif row := re.match(r"\| `(test_\w+)` \| .* \| (\d+) \| (.*) \|$", line):
            found.append(Line(file, row[1], int(row[2]), row[3]))
    return found


def _section(path: Path, outcomes: Mapping[str, str]) -> str:
    module = ast.parse(path.read_text(encoding="utf-8"))
    title, *text = _paragraphs(ast.get_docstring(module))
    lines = [f"## {title.rstrip('.')}", ""]
    for paragraph in text:
        lines += [paragraph, ""]
    lines += [f"Cases of `{path.name}`:", "", "| case | what | cases | outcome |"]
    lines.append("| --- | --- | --- | --- |")
    for function in functions_of(module):
        what = " ".join(_paragraphs(ast.get_docstring(function))[:1]).rstrip(".")
        by_outcome: dict[str, list[str]] = {}
        for name, outcome in outcomes.items():
            if name.partition("[")[0] == f"{path.name}::{function.name}":
                by_outcome.setdefault(outcome, []).append(name.partition("[")[2].rstrip("]"))
        for outcome, variants in by_outcome.items():
            told = outcome if outcome in (RIGHT, WRONG) else f"{OWN}: {outcome}"
            if len(by_outcome) > 1 and outcome != RIGHT:
                told += f" ({', '.join(f'`{one}`' for one in variants)})"
            lines.append(f"| `{function.name}` | {what} | {len(variants)} | {told} |")
    return "\n".join(lines)


def functions_of(module: ast.Module) -> Iterable[ast.FunctionDef]:
    """The cases of a file, in their order."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node


def _paragraphs(text: str | None) -> list[str]:
    return [" ".join(part.split()) for part in (text or "").split("\n\n")]


def case_name(node: str) -> str:
    """The node id of a case relative to this folder."""
    path, _, rest = node.partition("::")
    return f"{Path(path).name}::{rest}"


def _file(name: str) -> str:
    return name.partition("::")[0]
