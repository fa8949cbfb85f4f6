"""Write down what Apache Hudi makes of histories of rows, for tests that run without Java.

``python -m tests.jvm.capture_merging`` writes ``tests/unit/merged_by_hudi.json``. It holds the
histories of one seed, and for each kind of table the rows that Hudi-Spark left: which of the
batches each was last written by, and its values.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tests.jvm.engines import HUDI, Engine
from tests.merging_histories import CAPTURED, EVENTS, Kind, histories, kinds

SEED: Final = 20
KEYS: Final = 16
_COMMIT_TIME: Final = "_hoodie_commit_time"


def hudi_options(kind: Kind) -> dict[str, str]:
    """Return the options of a table of a kind for Hudi-Spark, which keeps the order of the rows."""
    return {
        "hoodie.table.name": "merged",
        "hoodie.datasource.write.recordkey.field": "id",
        "hoodie.datasource.write.partitionpath.field": "",
        "hoodie.write.auto.upgrade": "false",
        "hoodie.metadata.enable": "false",
        "hoodie.upsert.shuffle.parallelism": "1",
        "hoodie.insert.shuffle.parallelism": "1",
        **kind.options,
    }


def written_rows(rows: pa.Table, commits: list[str]) -> list[list[Any]]:
    """Return rows as lists, in the order of their keys: the number of the commit that wrote it, and
    its values.

    ``commits``: times of the commits, in order.
    """
    names = [name for name in EVENTS.names if name in rows.column_names]
    found = [
        [commits.index(row[_COMMIT_TIME]), *(_plain(row[name]) for name in names)]
        for row in rows.to_pylist()
    ]
    return sorted(found, key=lambda row: int(row[1]))


def _plain(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def commit_times(path: Path) -> list[str]:
    """Return the requested times of a table's completed commits, in order."""
    done = (path / ".hoodie" / "timeline").glob("*_*.commit")
    return sorted(file.name.partition("_")[0] for file in done)


def written_by_hudi(
    engine: Engine, path: Path, kind: Kind, batches: list[pa.Table]
) -> list[list[Any]]:
    """Write a history with Hudi-Spark and return what it left."""
    for batch in batches:
        engine.save(batch, path, hudi_options(kind))
    return written_rows(engine.read(path), commit_times(path))


def main() -> None:
    """Capture all kinds of tables."""
    drawn = histories(SEED, KEYS)
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(HUDI, Path(folder) / "engine")
        try:
            tables = [
                {
                    "kind": str(kind),
                    "rows": written_by_hudi(
                        engine, Path(folder) / str(number), kind, drawn[kind.history]
                    ),
                }
                for number, kind in enumerate(kinds())
            ]
        finally:
            engine.stop()
    document = {
        "written by": f"{HUDI.version}, by `python -m tests.jvm.capture_merging`",
        "histories": {
            name: [[[_plain(x) for x in row.values()] for row in one.to_pylist()] for one in some]
            for name, some in drawn.items()
        },
        "tables": tables,
    }
    CAPTURED.write_text(_lines(document), encoding="utf-8")


def _lines(document: dict[str, Any]) -> str:
    """Return the document as JSON with one table or batch a line."""
    histories_ = ",\n".join(
        f'  "{name}": [\n   ' + ",\n   ".join(map(_short, some)) + "\n  ]"
        for name, some in document["histories"].items()
    )
    tables = ",\n".join(f"  {_short(one)}" for one in document["tables"])
    said = json.dumps(document["written by"])
    return (
        f'{{\n "written by": {said},\n "histories": {{\n{histories_}\n }},\n'
        f' "tables": [\n{tables}\n ]\n}}\n'
    )


def _short(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


if __name__ == "__main__":
    main()
