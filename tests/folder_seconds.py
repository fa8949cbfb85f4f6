"""Seconds of a run by folder of tests, at its end; with several workers, of all of them."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import PurePosixPath

import pytest


class FolderSeconds:
    """Adds up what the tests of each folder take, with their fixtures."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.tests = Counter[str]()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the seconds of one phase of a test; workers send their reports here."""
        parts = PurePosixPath(report.nodeid.partition("::")[0]).parts
        folder = "/".join(parts[:2]) if len(parts) > 2 else parts[0]
        self.seconds[folder] += report.duration
        self.tests[folder] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the folders, the longest first, where there are several or it was long."""
        if len(self.seconds) < 2:
            return
        terminalreporter.section("seconds by folder")
        longest = sorted(self.seconds.items(), key=lambda each: each[1], reverse=True)
        for folder, seconds in longest:
            terminalreporter.write_line(f"{seconds:9.1f}s  {self.tests[folder]:5} tests  {folder}")
        whole = sum(self.seconds.values())
        terminalreporter.write_line(f"{whole:9.1f}s  {self.tests.total():5} tests")


def pytest_configure(config: pytest.Config) -> None:
    """Count where reports arrive: in the one process, or in the one that has workers."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(FolderSeconds())
