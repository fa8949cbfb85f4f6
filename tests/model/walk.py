"""Every state that moves lead to, the nearest first."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

StateT = TypeVar("StateT", bound=Hashable)


@dataclass(frozen=True)
class Verdict:
    """What was found.

    ``states``: how many states there are. ``violations``: what goes wrong, each with a shortest way
    to it.
    """

    states: int
    violations: dict[str, tuple[str, ...]]

    def __str__(self) -> str:
        lines = [f"{self.states:,} states"]
        for name, way in self.violations.items():
            lines += [f"{name}:", *(f"  {number:2}. {move}" for number, move in enumerate(way, 1))]
        return "\n".join(lines)


@contextmanager
def nothing_to_collect() -> Iterator[None]:
    """Keep Python from looking for cycles among very many states.

    They have none.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@nothing_to_collect()
def walk(
    first: StateT,
    moves: Callable[[StateT], Iterable[tuple[str, StateT]]],
    violations: Callable[[StateT], Iterable[str]],
    until: str | None = None,
) -> Verdict:
    """Take every move in every state.

    ``until``: what is looked for: the rest is left out as soon as it is found.
    """
    came_from: dict[StateT, tuple[str, StateT] | None] = {first: None}
    found: dict[str, StateT] = {}
    waiting = deque([first])
    while waiting and until not in found:
        state = waiting.popleft()
        for name in violations(state):
            found.setdefault(name, state)
        for move, following in moves(state):
            if following not in came_from:
                came_from[following] = move, state
                waiting.append(following)

    def way(state: StateT) -> tuple[str, ...]:
        taken = []
        while (step := came_from[state]) is not None:
            taken.append(step[0])
            state = step[1]
        return tuple(reversed(taken))

    return Verdict(len(came_from), {name: way(state) for name, state in found.items()})
