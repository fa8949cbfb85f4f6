"""Checks of table formats: an id and a sentence each, and deviations from them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

Test = TypeVar("Test", bound=Callable[..., object])


@dataclass(frozen=True)
class Check:
    """What a format must do.

    Attributes
    ----------
    id
        Its name in reports and deviations, such as ``F16``.
    sentence
        The contract in one sentence.
    source
        The part of the contract that it follows from: a hook, or a page.
    """

    id: str
    sentence: str
    source: str

    def __str__(self) -> str:
        return f"{self.id}. {self.sentence} (from {self.source})"


@dataclass(frozen=True)
class Deviation:
    """A check that a format is known to fail; strict: it is an error where it passes.

    Attributes
    ----------
    reason
        Why, for the readers of a report.
    raises
        What the check fails with.
    """

    reason: str
    raises: type[BaseException] = AssertionError


CHECKS: Final[dict[str, Check]] = {}
"""All of them, by id."""
_ATTRIBUTE: Final = "conformance_check"


def check(id_: str, sentence: str, source: str = "hudi_core.hookspecs") -> Callable[[Test], Test]:
    """Mark a test as the one of a check.

    Parameters
    ----------
    id_, sentence, source
        See :class:`Check`.

    Raises
    ------
    ValueError
        Another test has the id.
    """
    if id_ in CHECKS:
        raise ValueError(f"the check {id_} is there twice")
    CHECKS[id_] = Check(id_, sentence, source)

    def mark(test: Test) -> Test:
        test.__doc__ = f"{id_}. {sentence}"
        setattr(test, _ATTRIBUTE, CHECKS[id_])
        return test

    return mark


def check_of(test: Any) -> Check | None:
    """The check that a test is for; ``None`` for any other test."""
    found: Check | None = getattr(test, _ATTRIBUTE, None)
    return found
