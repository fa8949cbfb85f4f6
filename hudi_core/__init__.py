"""Tables that one writer keeps and any reader opens.

Every commit is recorded on an Apache Hudi timeline and, in the same commit, in the metadata of the
table's format. ``import hudi_core as hudi`` is all a user needs; what a plugin needs is in
:mod:`hudi_core.spi`.
"""

from hudi_core.config.option_warnings import UnknownOptionWarning
from hudi_core.doors import read, write
from hudi_core.engine.local import LocalEngine
from hudi_core.errors import HudiError
from hudi_core.model.commit import WriteOperation
from hudi_core.model.dry_run import DryRun
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.result import CommitResult
from hudi_core.spark_python import name_this_python
from hudi_core.table import Table

__all__ = [
    "Action",
    "CommitResult",
    "DryRun",
    "HudiError",
    "Instant",
    "LocalEngine",
    "State",
    "Table",
    "UnknownOptionWarning",
    "WriteOperation",
    "read",
    "write",
]

name_this_python()
