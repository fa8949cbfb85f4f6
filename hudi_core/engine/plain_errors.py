"""Errors of ours as a user of Spark meets them.

What a Python process of Spark raises reaches the user as text: by default its whole traceback, and
the error in the last line. Of an error that was raised on purpose the last line is what helps.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hudi_core.errors import HudiError

_HIDE: Final = "SPARK_HIDE_TRACEBACK"
"""What Spark sets for its processes where ``spark.sql.execution.pyspark.udf.hideTraceback.enabled``
is on."""


@contextmanager
def plain_errors() -> Iterator[None]:
    """Let our error reach the user without Spark's traceback.

    The error ends this Spark process.
    """
    try:
        yield
    except HudiError:
        os.environ[_HIDE] = "1"
        raise


# --- packages that executors need ----------------------------------------------------------------


MISSING: Final = (
    "A Spark executor runs {python}, which cannot import what a task needs: {reason}. Install "
    "hudi-core and what it requires there: into the Python that PYSPARK_PYTHON names on every "
    "node; or pack an environment that has it (venv-pack, conda-pack), send it along with "
    "spark.addArtifacts('environment.tar.gz#environment', archive=True) and set "
    "PYSPARK_PYTHON=./environment/bin/python. Where only hudi-core itself is missing, "
    "spark.addArtifacts('hudi_core.zip', pyfile=True), the wheel under another name, is enough."
)
"""To be formatted with the path of the Python and the error."""
