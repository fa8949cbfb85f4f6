"""Temporary folders of a table, gone when their write is complete."""

from __future__ import annotations

from typing import Final

from hudi_core.model.instant_time import InstantTime

TEMP_FOLDER: Final = ".hoodie/.temp"
"""Holds one folder per write."""
INCOMING_FOLDER: Final = f"{TEMP_FOLDER}/.incoming"
"""Holds one folder per job whose rows wait for the write that takes them in."""
STAGES_FOLDER: Final = ".hoodie/.stage"
"""Holds one folder per stage: rows that wait for their publication."""
STAGE: Final = ".stage"
"""Folder of staged rows below the temporary folder of a write."""


def temp_folder(instant: InstantTime) -> str:
    """Folder of an instant's temporary files, relative to the table."""
    return f"{TEMP_FOLDER}/{instant}"
