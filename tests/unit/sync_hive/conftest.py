"""A database of its own for each test."""

from __future__ import annotations

import uuid

import pytest
from hudi_conformance.hive_metastore import HiveMetastore as Service

from tests.unit.sync_hive.hive_tables import Lake


@pytest.fixture
def lake(metastore: Service) -> Lake:
    return Lake(metastore, f"s{uuid.uuid4().hex}")
