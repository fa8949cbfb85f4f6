"""Tables in DuckDB and polars, by one call each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hudi_core.read.query_times import QueryTime
from hudi_core.storage.location import PathLike
from hudi_core.table import Options, Table

if TYPE_CHECKING:
    import polars as pl


def duckdb(
    connection: Any,
    path: PathLike,
    name: str | None = None,
    options: Options | None = None,
    *,
    as_of: QueryTime | None = None,
) -> Any:
    """A table as a view of a DuckDB connection.

    Its SQL reads just the columns, files and row groups that a query needs. The view stays at the
    state of the table at the time of this call, and lasts as long as the connection; a further call
    brings it up to date.

    Parameters
    ----------
    connection
        Of the package ``duckdb``.
    path
        Local path or URI of the table.
    name
        What SQL calls it; by default the name of the table.
    options
        Hudi options, and credentials of the store.
    as_of
        Where to go back to.

    Returns
    -------
    duckdb.DuckDBPyRelation
        The view.

    Raises
    ------
    NotATableError
        There is no table at the path.
    """
    table = Table.open(path, options)
    view = table.config.name if name is None else name
    connection.register(view, table.scan(as_of=as_of))
    quoted = view.replace('"', '""')
    return connection.sql(f'SELECT * FROM "{quoted}"')  # noqa: S608 - quoted


def polars(
    path: PathLike, options: Options | None = None, *, as_of: QueryTime | None = None
) -> pl.LazyFrame:
    """A table as a lazy frame of polars.

    It reads just the columns, files and row groups that a query needs, batch by batch. Filters mean
    what they mean in polars' own frames. It stays at the state of the table at the time of this
    call.

    Parameters
    ----------
    path
        Local path or URI of the table.
    options
        Hudi options, and credentials of the store.
    as_of
        Where to go back to.

    Raises
    ------
    NotATableError
        There is no table at the path.
    """
    return Table.open(path, options).scan(as_of=as_of).polars()
