"""Reads tables with DuckDB's own readers of Iceberg and Delta Lake, as a process of its own.

Its release is an older one than that of the tests, as the readers follow later. Every line on the
standard input is a JSON list, a query and a path; the rows go to that path as a Parquet file, and
the answer is a JSON text: empty, or what went wrong.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb

EXTENSIONS = ("avro", "iceberg", "delta")


def main() -> None:
    """Answer until the input ends."""
    with duckdb.connect() as connection:
        # what is not here is not fetched from anywhere
        connection.execute("set autoinstall_known_extensions = false")
        connection.execute("set TimeZone = 'UTC'")
        for name in EXTENSIONS:
            connection.execute(f"load '{extension(name)}'")
        for line in sys.stdin:
            query, path = json.loads(line)
            try:
                connection.sql(query).write_parquet(path)
            except duckdb.Error as error:
                print(json.dumps(str(error)), flush=True)
            else:
                print(json.dumps(""), flush=True)


def extension(name: str) -> Path:
    """Return the file of an extension that was installed as a package."""
    spec = find_spec(f"duckdb_extension_{name}")
    assert spec is not None
    assert spec.origin is not None
    (found,) = Path(spec.origin).parent.glob(f"extensions/*/{name}.duckdb_extension")
    return found


if __name__ == "__main__":
    main()
