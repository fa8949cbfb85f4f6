"""Suites of tests that an extension of hudi-core has to pass.

A suite is a class; a subclass names the extension, and says what it is to be tested with where the
defaults do not do. pytest collects the subclass like any other.
"""

from typing import TYPE_CHECKING

from hudi_core.lazy import lazy_names

if TYPE_CHECKING:
    from hudi_conformance.conflict_strategies import ConflictStrategySuite
    from hudi_conformance.indexes import IndexSuite
    from hudi_conformance.key_generators import KeyGeneratorSuite
    from hudi_conformance.lock_providers import LockProviderSuite
    from hudi_conformance.record_mergers import RecordMergerSuite
    from hudi_conformance.storage_strategies import StorageStrategySuite

__all__ = [
    "ConflictStrategySuite",
    "IndexSuite",
    "KeyGeneratorSuite",
    "LockProviderSuite",
    "RecordMergerSuite",
    "StorageStrategySuite",
]

# the command of the package is found, and shows its help, without pytest
_HOMES = {
    "ConflictStrategySuite": "hudi_conformance.conflict_strategies",
    "IndexSuite": "hudi_conformance.indexes",
    "KeyGeneratorSuite": "hudi_conformance.key_generators",
    "LockProviderSuite": "hudi_conformance.lock_providers",
    "RecordMergerSuite": "hudi_conformance.record_mergers",
    "StorageStrategySuite": "hudi_conformance.storage_strategies",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
