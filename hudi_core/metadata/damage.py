"""The rebuild hint of every error about a damaged metadata table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from hudi_core.errors import CorruptMetadataError

REBUILD: Final = (
    "Rebuild the metadata table with its indexes: run `hudi table repair --metadata PATH`."
)


@contextmanager
def with_rebuild_hint() -> Iterator[None]:
    """Add the rebuild hint to errors about a damaged file.

    For codecs of lower rooms, which know the file and not what it is part of.
    """
    try:
        yield
    except CorruptMetadataError as error:
        if error.hint == REBUILD:
            raise
        raise CorruptMetadataError(error.path, error.reason, REBUILD) from error
