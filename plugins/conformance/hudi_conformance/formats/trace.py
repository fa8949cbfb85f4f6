"""An observer that keeps every call of a hook, and a distribution that installs it.

Observers are found by their entry points like formats: the distribution is a folder of metadata
that is put on the path.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hudi_core.spi import HOOKS, FormatCommit, hookimpl
from hudi_core.spi.testing import FORMAT_GROUP, OBSERVER_GROUP

DISTRIBUTION: Final = "conformance-of-formats"
OBSERVED: Final = f"conformance = {__name__}:Observer"
WATCHED: Final = tuple(
    name for name in HOOKS if name.startswith(("before_", "complete_", "archive_"))
)
"""The hooks that report actions."""


@dataclass(frozen=True)
class Call:
    """One call of a hook that returned; its arguments in the order of the contract."""

    hook: str
    arguments: Mapping[str, Any]
    result: Any

    @property
    def receipt(self) -> FormatCommit:
        assert isinstance(self.result, FormatCommit), self.hook
        return self.result


@dataclass
class Trace:
    """The calls since it was cleared, and who wants to know of calls and refusals."""

    calls: list[Call] = field(default_factory=list)
    begins: Callable[[str, Mapping[str, Any]], object] = lambda hook, arguments: None
    ended: Callable[[Call], object] = lambda call: None
    refused: Callable[[], object] = lambda: None
    """Called by a test when the format does not declare what it is about."""

    def hooks(self) -> list[str]:
        return [call.hook for call in self.calls]


TRACE: Final = Trace()


def _watching(hook: str) -> Any:
    names = HOOKS[hook].arguments

    def watch(self: object, **arguments: Any) -> Generator[None, Any, Any]:
        TRACE.begins(hook, arguments)
        result = yield
        call = Call(hook, {name: arguments[name] for name in names}, result)
        TRACE.calls.append(call)
        TRACE.ended(call)
        return result

    # pluggy hands over what the signature asks for
    parameters = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        for name in ("self", *names)
    ]
    watch.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return hookimpl(wrapper=True)(watch)


Observer = type("Observer", (), {hook: _watching(hook) for hook in WATCHED})
"""Watches every hook of :data:`WATCHED`."""


def install(folder: Path, formats: Mapping[str, str]) -> None:
    """Make a distribution in a folder of the path: the observer, and formats by their targets."""
    install_formats(folder, formats, DISTRIBUTION, (f"[{OBSERVER_GROUP}]", OBSERVED))


def install_formats(
    folder: Path, formats: Mapping[str, str], distribution: str, others: Sequence[str] = ()
) -> None:
    """Make a distribution of formats by their targets, in a folder of the path."""
    info = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n", encoding="utf-8"
    )
    lines = [*others, f"[{FORMAT_GROUP}]"]
    lines += [f"{name} = {target}" for name, target in formats.items()]
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")
