"""A Spark user's options as Hudi's.

Spark hands options over with their names in lower case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, get_args

from hudi_core.config.catalog import KNOWN_NAMES
from hudi_core.errors import InvalidOptionError
from hudi_core.storage.location import parse_location
from hudi_core.storage.options import StorageOptions

SaveMode = Literal["append", "overwrite", "errorifexists", "error", "ignore"]
_PATH: Final = "path"
_MODE: Final = "mode"
_SPELLED: Final = {name.lower(): name for name in KNOWN_NAMES if name.lower() not in KNOWN_NAMES}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a read or a write was asked for.

    Attributes
    ----------
    path
        The table.
    given
        Hudi's options and those of the store, in their own spelling.
    mode
        The save mode that the options name, because Spark lets sources in Python have only two;
        ``None`` for Spark's.
    """

    path: str
    given: dict[str, str]
    mode: SaveMode | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SourceOptions:
        """Return the view of what Spark hands over.

        Raises
        ------
        InvalidOptionError
            There is no path, or no such mode.
        """
        named = dict(options)
        path, mode = named.pop(_PATH, None), named.pop(_MODE, None)
        if not path:
            raise InvalidOptionError(
                _PATH, None, "the table's path is missing", "Give it to load(...) or save(...)."
            )
        given = {_SPELLED.get(name, name): text for name, text in named.items()}
        # tasks may have another working directory
        return cls(parse_location(path).uri, given, _mode(mode))

    @property
    def store(self) -> StorageOptions:
        """How to reach the table's store."""
        return StorageOptions.from_options(self.given)

    def save_mode(self, overwrite: bool) -> SaveMode:
        """Return the save mode, given whether Spark was told to overwrite.

        Raises
        ------
        InvalidOptionError
            The option says something else than Spark's overwrite.
        """
        if overwrite and self.mode not in (None, "overwrite"):
            raise InvalidOptionError(
                _MODE,
                self.mode,
                "the DataFrame is written with .mode('overwrite')",
                f"Write with .mode('append') and the option mode={self.mode}.",
            )
        return self.mode or ("overwrite" if overwrite else "append")


def _mode(text: str | None) -> SaveMode | None:
    if text is None:
        return None
    for mode in get_args(SaveMode):
        if text.lower() == mode:
            return mode  # type: ignore[no-any-return]  # get_args does not say
    supported = ", ".join(get_args(SaveMode))
    raise InvalidOptionError(_MODE, text, "there is no such mode", f"Supported: {supported}.")
