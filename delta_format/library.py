"""What deltalake raises, in the errors of this project."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pyarrow as pa
from deltalake.exceptions import DeltaError, TableNotFoundError

from delta_format.location import LOG_FOLDER
from hudi_core.spi import CorruptMetadataError, MissingMetadataError, StorageError

LIBRARY_ERRORS: Final = (DeltaError, OSError, ValueError, RuntimeError, pa.ArrowException)
"""What deltalake raises; none of them is proof that nothing has happened."""


@contextmanager
def translated(root: str) -> Iterator[None]:
    """Turn what deltalake raises while it reads into errors of the project."""
    where = f"{root}/{LOG_FOLDER}"
    remedy = (
        f"`hudi table repair {root}` rebuilds the log from the timeline and the data files, "
        "which are not touched."
    )
    try:
        yield
    except TableNotFoundError as error:
        raise MissingMetadataError(where, f"holds no Delta log ({error})", remedy) from error
    except OSError as error:
        raise StorageError(
            f"The Delta log {where} cannot be read: {error}", "Try again once the store answers."
        ) from error
    except (DeltaError, ValueError, RuntimeError, pa.ArrowException) as error:
        raise CorruptMetadataError(where, str(error), remedy) from error
