"""Files of other writers whose rows a commit takes into the table.

The commit says which in its extra metadata: who replays it publishes it on the state of the other
writer, and takes their files out in the same change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from hudi_core.errors import CorruptMetadataError

TAKES_IN_KEY: Final = "hudi.takes-in"
"""Key of a commit's extra metadata, and of the state that a format makes of it."""


@dataclass(frozen=True, slots=True)
class TakenIn:
    """Files of other writers that a commit replaces in a format.

    Attributes
    ----------
    version
        The state that another writer made, and that was looked at.
    files
        Paths of the files that other writers brought, as the format's lister names them.
    """

    version: str
    files: tuple[str, ...]

    @classmethod
    def of(cls, extra_metadata: Mapping[str, str], format_name: str) -> TakenIn | None:
        """What a commit takes in of one format; ``None`` for nothing."""
        return taken_in_by_format(extra_metadata).get(format_name)


def taken_in_by_format(extra_metadata: Mapping[str, str]) -> dict[str, TakenIn]:
    """What a commit takes in, by format; empty for most commits.

    Raises
    ------
    CorruptMetadataError
        It is damaged.
    """
    text = extra_metadata.get(TAKES_IN_KEY)
    if text is None:
        return {}
    try:
        return {
            name: TakenIn(str(one["version"]), tuple(map(str, one["files"])))
            for name, one in json.loads(text).items()
        }
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CorruptMetadataError(
            f"{TAKES_IN_KEY} of a commit", f"it does not say which files ({error})"
        ) from error


def taken_in_keys(by_format: Mapping[str, TakenIn]) -> dict[str, str]:
    """The extra metadata of a commit that takes files in."""
    if not by_format:
        return {}
    value = {
        name: {"version": one.version, "files": list(one.files)} for name, one in by_format.items()
    }
    return {TAKES_IN_KEY: json.dumps(value)}
