"""Services for tests, as fixtures of pytest: a Hive metastore, and AWS Glue.

``pytest_plugins = ["hudi_conformance.services"]`` in the ``conftest.py`` at the root of the tests
makes them known. Each starts with the first test that asks for it, listens on the loopback device
alone, and ends with the run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hudi_conformance.hive_metastore import HiveMetastore


@pytest.fixture(scope="session")
def hive_metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveMetastore]:
    """Give the Hive metastore of this test run; one for all its processes, as it starts slowly.

    Needs Java, and ``pip install hudi-conformance[hive]``.
    """
    from hudi_conformance.hive_metastore import shared_metastore  # noqa: PLC0415 - an extra

    folder = tmp_path_factory.getbasetemp()
    is_one_of_several = "PYTEST_XDIST_WORKER" in os.environ
    with shared_metastore(folder.parent if is_one_of_several else folder) as service:
        yield service


@pytest.fixture(scope="session")
def glue() -> Iterator[str]:
    """Give the address of AWS Glue, as moto serves it from this process.

    Needs ``pip install hudi-conformance[glue]``.
    """
    from hudi_conformance.glue import glue_service  # noqa: PLC0415 - an extra

    with glue_service() as address:
        yield address
