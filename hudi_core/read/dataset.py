"""A table state as Arrow dataset, for DuckDB, polars and Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs as pafs

from hudi_core.read.file_reader import PARQUET
from hudi_core.read.filters import Filter, RowFilter, to_filter
from hudi_core.read.foreign import referenced_columns
from hudi_core.read.query import SnapshotQuery

if TYPE_CHECKING:
    import polars as pl

_BATCH_ROWS: Final = 1 << 17
"""Arrow's own default."""
_NOT_FOR_ACERO: Final = (
    "a Hudi table is read by the methods of its dataset (scanner, to_table, to_batches), "
    "not by Arrow's own scan of files"
)


class HudiDataset(ds.FileSystemDataset):  # type: ignore[misc]  # pyarrow has no types
    """The rows of a table at one state of its timeline.

    Nothing is listed or read before rows are asked for. Then only the columns asked for are read,
    and only the files and row groups that may hold a matching row; files that were written before
    the columns changed are brought to the columns of the table. Commits that come later are not
    seen, but by the dataset that :meth:`refreshed` returns.

    ``as_of`` is a query time, or ``None`` for the latest state that ``query`` knows; ``present``
    returns a query of the table's present state.
    """

    def __init__(
        self,
        query: SnapshotQuery,
        as_of: str | None = None,
        row_filter: RowFilter | Filter | None = None,
        present: Callable[[], SnapshotQuery] | None = None,
    ) -> None:
        self._query = query
        self._present = present
        self._as_of = as_of
        self._condition = to_filter(row_filter, query.schema)
        # what reaches past the methods to Arrow's own list of files must not find rows there that
        # only our reader makes right, nor none at all
        here = pafs.LocalFileSystem()
        super().__init__([PARQUET.make_fragment(_NOT_FOR_ACERO, here)], query.schema, PARQUET, here)

    def refreshed(self) -> HudiDataset:
        """The dataset of the table's present state.

        It is this one where that is its state. Looks at the timeline, and plans nothing. The one of
        a past state (``as_of``) stays there, with the present columns.
        """
        now = self._query if self._present is None else self._present()
        if now.is_of_the_state_of(self._query):
            return self
        condition = None if self._condition is None else self._condition.expression
        return HudiDataset(now, self._as_of, condition, self._present)

    @property
    def files(self) -> list[str]:
        """Where the files are that hold the rows."""
        return list(self._query.plan(self._as_of, self._condition).uris)

    def scanner(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002 - the name is Arrow's
        batch_size: int = _BATCH_ROWS,
        **options: Any,
    ) -> ds.Scanner:
        """A scanner, which can be used once."""
        kept = {name: options[name] for name in ("use_threads", "memory_pool") if name in options}
        names = self._needed(columns)
        rows = self._query.to_arrow(names, self._both(filter), self._as_of, batch_size)
        if columns is None or (not isinstance(columns, Mapping) and list(columns) == names):
            return ds.Scanner.from_batches(rows, batch_size=batch_size, **kept)
        projection = dict(columns) if isinstance(columns, Mapping) else list(columns)
        return ds.Scanner.from_batches(rows, columns=projection, batch_size=batch_size, **kept)

    def to_table(
        self,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
        **options: Any,
    ) -> pa.Table:
        """The rows at once; see :meth:`scanner`."""
        names = self._needed(columns)
        is_plain = columns is None or (not isinstance(columns, Mapping) and list(columns) == names)
        if options or not is_plain or not names:
            return self.scanner(columns, filter, **options).to_table()
        # not batch by batch, which takes longer
        return self._query.to_table(names, self._both(filter), self._as_of)

    def count_rows(self, filter: pc.Expression | None = None, **_: Any) -> int:  # noqa: A002
        """The number of rows."""
        return self._query.count(self._both(filter), self._as_of)

    def head(
        self,
        num_rows: int,
        columns: Sequence[str] | Mapping[str, pc.Expression] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
        **_: Any,
    ) -> pa.Table:
        """The first rows; no more files are read than it takes."""
        names = self._needed(columns)
        rows = self._query.head(num_rows, names, self._both(filter), self._as_of)
        return ds.dataset(rows).to_table(columns) if columns is not None else rows

    def polars(self) -> pl.LazyFrame:
        """The rows as a lazy frame of polars.

        Its filters mean what they mean in polars' own frames, which those that
        ``polars.scan_pyarrow_dataset`` hands down to Arrow do not.
        """
        from hudi_core.read.polars_scan import lazy_frame  # noqa: PLC0415 - imports polars

        return lazy_frame(self._query, self._condition, self._as_of)

    def filter(self, expression: pc.Expression) -> HudiDataset:
        """The dataset of those rows only that an expression accepts."""
        return HudiDataset(self._query, self._as_of, self._both(expression), self._present)

    def sort_by(self, sorting: str | list[tuple[str, str]], **options: Any) -> ds.InMemoryDataset:
        """The rows in an order, in memory."""
        return ds.InMemoryDataset(self.to_table().sort_by(sorting, **options))

    def join(self, right_dataset: ds.Dataset, *args: Any, **options: Any) -> ds.InMemoryDataset:
        """The rows joined with those of another dataset, in memory."""
        return ds.InMemoryDataset(self.to_table()).join(_in_memory(right_dataset), *args, **options)

    def join_asof(
        self, right_dataset: ds.Dataset, *args: Any, **options: Any
    ) -> ds.InMemoryDataset:
        """The rows joined with the nearest ones of another dataset, in memory."""
        left = ds.InMemoryDataset(self.to_table())
        return left.join_asof(_in_memory(right_dataset), *args, **options)

    def get_fragments(self, filter: pc.Expression | None = None) -> NoReturn:  # noqa: A002
        """Refuse: files alone are not the rows of the table."""
        raise NotImplementedError(_NOT_FOR_ACERO)

    def replace_schema(self, schema: pa.Schema) -> NoReturn:
        """Refuse: the columns are the table's; ``scanner(columns=...)`` makes others of them."""
        raise NotImplementedError(_NOT_FOR_ACERO)

    def __reduce__(self) -> NoReturn:
        raise TypeError("The dataset of a Hudi table cannot be pickled: it holds an open table")

    def _both(self, further: pc.Expression | None) -> Filter | None:
        added = to_filter(further, self._query.schema)
        if self._condition is None or added is None:
            return self._condition if added is None else added
        return self._condition & added

    def _needed(self, columns: Sequence[str] | Mapping[str, pc.Expression] | None) -> list[str]:
        schema = self._query.schema
        if columns is None:
            return list(schema.names)
        if not isinstance(columns, Mapping):
            return list(dict.fromkeys(columns))
        found = [referenced_columns(one, schema, schema.names) for one in columns.values()]
        # where no column is asked for, one still counts the rows
        return sorted(frozenset[str]().union(*found)) or schema.names[:1]


def _in_memory(dataset: ds.Dataset) -> ds.Dataset:
    if isinstance(dataset, HudiDataset):
        return ds.InMemoryDataset(dataset.to_table())
    return dataset
