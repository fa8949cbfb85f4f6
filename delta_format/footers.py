"""Rows and statistics of existing files, for the Delta log.

Delta finds columns by their names, and reads a column in the one type that the table has. A file
from before a column was renamed, dropped and added again, or widened, is refused, as it would be
read wrongly.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as pt

from delta_format.stats import without_float_bounds
from hudi_core.spi import FileStats, MetaClientView, UnsupportedTableError
from hudi_core.spi.files import field_id, leaves, read_footer


def described(meta_client: MetaClientView, path: str, schema: pa.Schema) -> tuple[int, FileStats]:
    """Return a file's row count and statistics by leaf path.

    ``path`` is relative to the table; ``schema`` has the field ids. A column that Delta would read
    wrongly is refused.
    """
    footer = read_footer(meta_client, path, schema)
    _require_table_columns(meta_client, path, footer.schema, schema)
    return footer.rows, without_float_bounds(footer.columns, schema)


def rows_of(meta_client: MetaClientView, path: str) -> int:
    """Return the number of rows of a file; see :func:`described`."""
    return read_footer(meta_client, path, pa.schema([])).rows


def _require_table_columns(
    meta_client: MetaClientView, path: str, stored: pa.Schema, schema: pa.Schema
) -> None:
    ids = {field_id(field): name for name, field in leaves(schema)}
    now = dict(leaves(schema))
    for name, field in leaves(stored):
        number = field_id(field)
        if number is not None and ids.get(number, name) != name:
            raise _refused(meta_client, path, f"{name}, which is called {ids[number]} now")
        known = now.get(name)
        if known is None:
            continue
        if number is not None and number != field_id(known):
            raise _refused(meta_client, path, f"{name}, which is another column now")
        if _is_other(field.type, known.type):
            raise _refused(meta_client, path, f"{name} of type {field.type}, now {known.type}")


def _is_other(stored: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether two types are two of Delta's as well."""
    number = (pt.is_integer, pt.is_floating, pt.is_decimal)
    if any(is_kind(stored) or is_kind(wanted) for is_kind in number):
        return not stored.equals(wanted)
    return False


def _refused(meta_client: MetaClientView, path: str, what: str) -> UnsupportedTableError:
    return UnsupportedTableError(
        meta_client.base_path,
        f"has a file {path} with the column {what}; Delta's readers would not see that",
        "Write the rows of the old files again first, as by insert_overwrite_table, or use a "
        "format that knows columns by their ids.",
    )
