"""A table of every format, written and read in a clean environment; prints what it found.

The test of what is installed runs this text; nothing of the tests can be imported here.
"""

from __future__ import annotations

import importlib
import json
import sys

import pyarrow as pa

import hudi_core as hudi

ROWS = pa.table({"id": ["a", "b"], "n": [1, 2]})
# what the extras are for
LIBRARIES = ("boto3", "duckdb", "kazoo", "prometheus_client", "pyspark", "sqlglot", "thrift")


def round_trip(name: str) -> list[int]:
    """Write a table of the format, change it by SQL, and return its column."""
    with hudi.Table.create(name, ROWS.schema, record_key="id", format=name) as table:
        table.insert(ROWS)
        table.update({"n": "n + 10"}, where="id = 'b'")
        return sorted(table.to_arrow(columns=["n"])["n"].to_pylist())


def main() -> None:
    """Print the columns by format, and where each package of the project lies."""
    for library in LIBRARIES:
        importlib.import_module(library)
    found = {name: round_trip(name) for name in sys.argv[1:]}
    print(json.dumps({"rows": found, "core": hudi.__file__}))


if __name__ == "__main__":
    main()
