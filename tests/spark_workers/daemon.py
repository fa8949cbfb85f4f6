"""Spark's daemon of Python workers, which imports before it forks what each of them would import.

A task that fails ends its worker, and workers without a task end after a minute.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from pyspark.daemon import manager

_USED_IN_TASKS: Final = (
    "pandas",  # by pyarrow, for its first array of a list
    "hudi_core.engine.spark",
    "hudi_core.read.scan",
    "hudi_core.services.opening",
    "hudi_core.write.bulk_insert",
    "hudi_core.write.merge_handle",
    "native_format.plugin",
    "pyspark_hudi.reader",
    "pyspark_hudi.writer",
)

if __name__ == "__main__":
    for name in _USED_IN_TASKS:
        import_module(name)
    manager()
