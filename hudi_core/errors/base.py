"""The root of all errors, and the warnings."""

from __future__ import annotations

from typing import ClassVar


class HudiError(Exception):
    """Root of everything the project raises on purpose.

    Parameters
    ----------
    what
        What is wrong, as one sentence without the final full stop.
    hint
        What the reader of the message can do about it.
    facts
        The values the message was built from; kept as the attribute ``facts`` for programs.
    """

    retryable: ClassVar[bool] = False

    def __init__(self, what: str, hint: str, **facts: object) -> None:
        self.what = what
        self.hint = hint
        self.facts = facts
        super().__init__(f"{what}. {hint}")

    def __reduce__(self) -> tuple[object, ...]:
        # errors cross from executors to the driver, where Spark unpickles them
        return (_rebuild, (type(self), self.what, self.hint, self.facts))


def _rebuild(kind: type[HudiError], what: str, hint: str, facts: dict[str, object]) -> HudiError:
    error = kind.__new__(kind)
    HudiError.__init__(error, what, hint, **facts)
    for name, value in facts.items():
        setattr(error, name, value)
    return error


class UnknownOptionWarning(UserWarning):
    """An option that is not known, or not built yet."""


class PluginContractWarning(UserWarning):
    """A plugin is written for an older or a later contract."""


class MetaSyncWarning(UserWarning):
    """A sync that failed after its commit, and may."""
