"""What Hudi-Spark finds by filters: by skipping data, by reading everything, and by listing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tests.jvm.engines import Engine
from tests.jvm.filters import Filter, Row, among, compare, is_not_null, is_null
from tests.jvm.report import OwnFailureError
from tests.jvm.writers import HudiSpark, Shape, Writer, insert_all, name_of, ours, plain_rows

WAYS: Final = {
    "skipping": {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"},
    "no skipping": {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "false"},
    "listing": {"hoodie.metadata.enable": "false"},
}
"""Ways of Hudi-Spark to find the files that a filter needs."""
Found = dict[tuple[str, str], Any]
"""The keys of rows, or the text of an error, by the SQL of a filter and the way."""


@dataclass(frozen=True)
class Filtered:
    """What an engine made of filters.

    ``found``: keys or errors. ``files``: files that were read, by way.
    """

    found: Found
    files: dict[str, int]

    @property
    def skips(self) -> bool:
        """Whether fewer files were read with data skipping than without."""
        return self.files["skipping"] < self.files["no skipping"]


def filtered(
    engine: Engine,
    path: Path,
    filters: Sequence[Filter],
    key: str = "id",
    more: Mapping[str, str] | None = None,
) -> Filtered:
    """Let an engine find the rows of filters, every way.

    ``more``: further options of the reader.
    """
    found: Found = {}
    files: dict[str, int] = {}
    for way, options in WAYS.items():
        given = {**options, **(more or {})}
        answers = engine.answers(path, [key], [one.sql for one in filters], given)
        files[way] = sum(answer.files for answer in answers)
        for one, answer in zip(filters, answers, strict=True):
            found[one.sql, way] = answer.error or answer.rows
    return Filtered(found, files)


def wanted(filters: Iterable[Filter], rows: Sequence[Row], key: str = "id") -> Found:
    """Return what every way is to find."""
    return {(one.sql, way): one.ids(rows, key) for one in filters for way in WAYS}


def differences(found: Found, right: Found) -> dict[tuple[str, str], tuple[Any, Any]]:
    """Return what was found and what is right, where they differ."""
    return {each: (found[each], right[each]) for each in right if found[each] != right[each]}


def judge_filters(engine: Engine, right: Found, asked: Callable[[Writer], Found]) -> None:
    """Compare what Hudi-Spark finds in our table with what is right.

    ``asked``: asks the filters of a table that a writer makes. Where an answer about ours is wrong,
    the control is a table that this project had no hand in: the same one, made by Hudi-Spark.
    ``OwnFailureError``: Wherever it is wrong about ours, it is wrong in the same way about its own.
    """
    wrong = differences(asked(ours), right)
    if wrong:
        control = asked(HudiSpark(engine))
        of_ours = {each: both for each, both in wrong.items() if control[each] != both[0]}
        assert not of_ours, f"found and wanted, where its own table says something else: {of_ours}"
        raise OwnFailureError(f"of its own table as well: {wrong}")


def judged(
    engine: Engine,
    folder: Path,
    shape: Shape,
    batches: Sequence[pa.Table],
    filters: Sequence[Filter],
) -> None:
    """Judge filters of a table that each writer makes of batches; their columns may differ."""

    def asked(write: Writer) -> Found:
        path = insert_all(write, folder / name_of(write), shape, batches)
        return filtered(engine, path, filters).found

    judge_filters(engine, wanted(filters, plain_rows(batches)), asked)


def filters_of(column: str, kind: pa.DataType, values: Sequence[Any]) -> list[Filter]:
    """Filters of every sort on a column, by values that it has: three of them."""
    first, second, third = values
    return [
        compare(column, "=", first, kind),
        compare(column, ">", second, kind),
        compare(column, "<=", second, kind),
        among(column, [first, third], kind),
        is_null(column),
        is_not_null(column),
    ]
