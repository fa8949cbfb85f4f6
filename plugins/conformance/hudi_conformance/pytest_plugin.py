"""What pytest does for suites of this package: deviations, and what a failed check is about.

pytest loads this by itself in an environment that has the package, so it imports next to nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import pytest

CHECK: Final = "conformance_check"
"""The property of a test that names its check."""
REFUSED: Final = "conformance_refused"
"""The property of a test in which the format refused what it does not declare."""
HISTORIES: Final = "conformance_histories"
"""The option with the number of random histories."""
_HEADING = "what a table format must do"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose checks, and the number of random histories."""
    parser.addoption(
        "--conformance-checks", default="", help="ids of checks of formats, with commas between"
    )
    parser.addoption(
        "--conformance-histories",
        type=int,
        dest=HISTORIES,
        help="how many random histories of tables, new ones each time; by default a few that stay",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Expect what a class names as deviation to fail, strictly; leave out what is not chosen."""
    chosen = [*filter(None, config.getoption("--conformance-checks").split(","))]
    if chosen:
        items[:] = [
            item for item in items if (check := _check_of(item)) is None or check.id in chosen
        ]
    for item in items:
        check = _check_of(item)
        deviations = getattr(getattr(item, "cls", None), "deviations", {})
        if check is not None and check.id in deviations:
            known = deviations[check.id]
            item.add_marker(
                pytest.mark.xfail(strict=True, reason=known.reason, raises=known.raises)
            )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say below a failure which sentence of the contract is not kept."""
    report = yield
    check = _check_of(item)
    if check is not None:
        report.user_properties.append((CHECK, check.id))
        if report.failed:
            report.sections.append((_HEADING, str(check)))
    return report


def _check_of(item: pytest.Item) -> Any:
    return getattr(getattr(item, "function", None), CHECK, None)
