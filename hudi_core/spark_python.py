"""The Python in which Spark looks for data sources, by default.

Without ``PYSPARK_PYTHON`` Spark runs ``python3`` of the path. In a virtual environment that is not
activated that is another Python than this one, and does not have the data source ``hudi``.
"""

from __future__ import annotations

import os
import shutil
import sys
from importlib import import_module
from typing import Any, Final

_VARIABLES: Final = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
_REGISTRATION: Final = "pyspark_hudi.registration"


def name_this_python() -> None:
    """Make Spark find data sources of this Python, unless configured otherwise.

    Of a session that is there already, on this machine alone, the sources are registered. Python
    functions in tasks go on to run in the Python that ``PYSPARK_PYTHON`` names.
    """
    if any(os.environ.get(name) for name in _VARIABLES) or not sys.executable or _is_on_the_path():
        return
    module = sys.modules.get("pyspark.sql")
    session: Any = None if module is None else module.SparkSession.getActiveSession()
    if getattr(session, "_jvm", None) is None:
        os.environ[_VARIABLES[0]] = sys.executable  # read by the JVM when it starts
    else:
        # by its name: pyspark is optional, and pyspark_hudi is built on this package
        import_module(_REGISTRATION).register(session)


def _is_on_the_path() -> bool:
    """Whether ``python3`` on the path belongs to this environment."""
    found = shutil.which("python3")
    own, other = os.path.dirname(sys.executable), os.path.dirname(found or "")
    return found is not None and os.path.exists(own) and os.path.samefile(own, other)
