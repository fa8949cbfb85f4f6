"""Packages that executors need, and the error where they lack them."""

from __future__ import annotations

from typing import Final

MISSING: Final = (
    "A Spark executor runs {python}, which cannot import what a task needs: {reason}. Install "
    "hudi-core and what it requires there: into the Python that PYSPARK_PYTHON names on every "
    "node; or pack an environment that has it (venv-pack, conda-pack), send it along with "
    "spark.addArtifacts('environment.tar.gz#environment', archive=True) and set "
    "PYSPARK_PYTHON=./environment/bin/python. Where only hudi-core itself is missing, "
    "spark.addArtifacts('hudi_core.zip', pyfile=True), the wheel under another name, is enough."
)
"""To be formatted with the path of the Python and the error."""
