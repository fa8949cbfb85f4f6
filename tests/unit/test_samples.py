"""Which cells of matrices a run takes."""

from __future__ import annotations

import pytest

from tests.samples import cells_of_other_turns


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 100])
def test_each_cell_has_its_turn(count: int) -> None:
    """Within three commits in a row, and no test goes without a cell."""
    cells = {f"tests/test_x.py::test_it[{n}]" for n in range(count)}
    for first in range(12):
        taken = [cells - cells_of_other_turns(cells, first + n) for n in range(3)]
        assert set().union(*taken) == cells
        assert all(1 <= len(some) <= -(-count // min(3, count)) for some in taken)


def test_tests_do_not_take_the_same_turn() -> None:
    names = [f"tests/test_{test}.py::test_it[{cell}]" for test in range(40) for cell in "abc"]
    taken = set(names) - cells_of_other_turns(names, 0)
    assert len(taken) == 40
    assert {name[-2] for name in taken} == {"a", "b", "c"}
