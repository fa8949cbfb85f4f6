"""Marks of hooks: what the contract says of each, beside its text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar, get_type_hints, overload

from pluggy import HookimplMarker

from hudi_core.hookspecs.version import BEFORE_VERSIONS

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C")

PROJECT: Final = "hudi"
hookimpl = HookimplMarker(PROJECT)
"""Marks a method as the implementation of the hook of that name.

Of observers, with ``wrapper=True``, and of formats that do not derive from ``TableFormat``.
"""
_MARK: Final = "hudi_hook"


@dataclass(frozen=True, slots=True)
class Hook:
    """One hook of the contract.

    Attributes
    ----------
    name
        Its name.
    arguments
        Names of its arguments, in the order of the contract, without ``self``.
    function
        The method of ``TableFormat`` that replaces it in a format without it.
    is_required
        Whether every format has it.
    needed_by
        Abilities, any of which makes it required; a format with none of them is never asked.
    since
        The contract that brought it: what an older plugin has of this name is something else.
    is_fenced
        Whether the views that it gets are those of the fenced timeline; else the format has no
        metadata yet that can be trusted.
    last_first
        Whether several formats of a table are asked from the last to the first, and not in the
        order in which the table names them.
    """

    name: str
    arguments: tuple[str, ...]
    function: Callable[..., Any]
    is_required: bool
    needed_by: frozenset[str]
    since: str
    is_fenced: bool = True
    last_first: bool = False

    @property
    def is_optional(self) -> bool:
        """Whether a format may leave it out, whatever it declares."""
        return not (self.is_required or self.needed_by)

    @property
    def returns(self) -> Any:
        """Its annotated result."""
        return get_type_hints(self.function)["return"]


class Called(Generic[C]):
    """The type of a hook as a method of a format's host.

    The host supplies ``view_manager``. Of the class it is the plain function.
    """

    @overload
    def __get__(self, host: None, owner: type) -> Callable[..., Any]: ...
    @overload
    def __get__(self, host: object, owner: type) -> C: ...
    def __get__(self, host: object, owner: type) -> Any:
        raise NotImplementedError  # an annotation alone


def hook(
    *,
    is_required: bool = False,
    needed_by: Iterable[str] = (),
    since: str = BEFORE_VERSIONS,
    is_fenced: bool = True,
    last_first: bool = False,
) -> Callable[[F], F]:
    """Mark a method of ``TableFormat`` as a hook; see :class:`Hook`."""

    def mark(function: F) -> F:
        arguments = tuple(inspect.signature(function).parameters)[1:]
        needs = frozenset(needed_by)
        found = Hook(
            function.__name__,
            arguments,
            function,
            is_required,
            needs,
            since,
            is_fenced,
            last_first,
        )
        setattr(function, _MARK, found)
        return function

    return mark


def hooks_of(owner: type) -> Iterator[Hook]:
    """The hooks that a class defines itself, in its order."""
    for member in vars(owner).values():
        found = getattr(member, _MARK, None)
        if isinstance(found, Hook):
            yield found
