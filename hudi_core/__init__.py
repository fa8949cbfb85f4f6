"""Tables that one writer keeps and any reader opens.

Every commit is recorded on an Apache Hudi timeline and, in the same commit, in the metadata of the
table's format. ``import hudi_core as hudi`` is all a user needs; what a plugin needs is in
:mod:`hudi_core.spi`. The module behind a name is imported when the name is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from hudi_core.errors import HudiError, UnknownOptionWarning
from hudi_core.lazy import lazy_names
from hudi_core.spark_python import name_this_python

if TYPE_CHECKING:
    from hudi_core.doors.connector import Connector
    from hudi_core.doors.datasource import read, read_metadata, write
    from hudi_core.doors.queries import duckdb, polars
    from hudi_core.doors.sql_procedures import procedures
    from hudi_core.doors.streaming import stream_sink
    from hudi_core.engine.local import LocalEngine
    from hudi_core.ingestion import ingest
    from hudi_core.model.commit import WriteOperation
    from hudi_core.model.dry_run import DryRun
    from hudi_core.model.instant import Action, Instant, State
    from hudi_core.model.result import CommitResult
    from hudi_core.statements import sql, sql_session
    from hudi_core.table import Table

__all__ = [
    "Action",
    "CommitResult",
    "Connector",
    "DryRun",
    "HudiError",
    "Instant",
    "LocalEngine",
    "State",
    "Table",
    "UnknownOptionWarning",
    "WriteOperation",
    "duckdb",
    "ingest",
    "polars",
    "procedures",
    "read",
    "read_metadata",
    "sql",
    "sql_session",
    "stream_sink",
    "write",
]

_HOMES: Final = {
    "Action": "hudi_core.model.instant",
    "CommitResult": "hudi_core.model.result",
    "Connector": "hudi_core.doors.connector",
    "DryRun": "hudi_core.model.dry_run",
    "Instant": "hudi_core.model.instant",
    "LocalEngine": "hudi_core.engine.local",
    "State": "hudi_core.model.instant",
    "Table": "hudi_core.table",
    "WriteOperation": "hudi_core.model.commit",
    "duckdb": "hudi_core.doors.queries",
    "ingest": "hudi_core.ingestion",
    "polars": "hudi_core.doors.queries",
    "procedures": "hudi_core.doors.sql_procedures",
    "read": "hudi_core.doors.datasource",
    "read_metadata": "hudi_core.doors.datasource",
    "sql": "hudi_core.statements",
    "sql_session": "hudi_core.statements",
    "stream_sink": "hudi_core.doors.streaming",
    "write": "hudi_core.doors.datasource",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)

# Two packages have the names of functions. The import system sets a package as an attribute of its
# parent once, when it is first imported: this is done here, and the functions keep their names.
for _name in ("read", "write"):
    import_module(f"{__name__}.{_name}")
    del globals()[_name]
del _name

name_this_python()
