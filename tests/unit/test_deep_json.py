"""JSON from outside that is nested without end: an error of ours, as of any other damage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from hudi_core.config.storage_move import StorageMove
from hudi_core.errors import CorruptMetadataError, SchemaError
from hudi_core.metadata.recorded import _decoded
from hudi_core.read.connector.predicate import TupleDomain
from hudi_core.read.connector.splits import Split
from hudi_core.services.adopt import AdoptionRecord
from hudi_core.storage.claims import Claim
from hudi_core.txn.creation import creation_folders

DEEP = "[" * 100_000


class DeepFiles:
    """A storage whose every file is such a text."""

    root = "memory://table"

    def read(self, *_: Any) -> bytes:
        return DEEP.encode()


FILES: Any = DeepFiles()


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda: Split.from_json(DEEP), SchemaError),
        (lambda: TupleDomain.from_json(DEEP, pa.schema([])), SchemaError),
        (lambda: Claim.decode(DEEP.encode(), "claim"), CorruptMetadataError),
        (lambda: AdoptionRecord.load(FILES), CorruptMetadataError),
        (lambda: creation_folders(FILES), CorruptMetadataError),
        # the parser of a stored property, whose caller names the file
        (lambda: StorageMove.parse(DEEP), ValueError),
    ],
)
def test_deep_json_is_damage(read: Callable[[], object], error: type[Exception]) -> None:
    with pytest.raises(error) as found:
        read()
    assert "Recursion" not in str(found.value)


def test_notes_of_somebody_else_are_nothing() -> None:
    assert _decoded(DEEP) == {}
