"""Extra metadata of a commit, as its caller asks for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from hudi_core.errors import CorruptMetadataError, InvalidOptionError
from hudi_core.model.commit import SCHEMA_KEY

# --- files of other writers whose rows a commit takes into the table ------------------------------
# The commit says which in its extra metadata: who replays it publishes it on the state of the other
# writer, and takes their files out in the same change.


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


# --- extra metadata that a caller asks for --------------------------------------------------------


OWN_PREFIX: Final = "hudi."
"""Keys of extra metadata below it are the project's own."""
RUN_AT_ONCE_KEY: Final = f"{OWN_PREFIX}run-at-once"
"""Key of a plan's extra metadata: who made the plan runs it too, so that it dies with them."""
DELETED_ROWS_KEY: Final = f"{OWN_PREFIX}deleted-rows"
"""How many rows a deletion of partitions took out of the table, which no file of it counts."""


@dataclass(frozen=True, slots=True)
class Idempotency:
    """Identity of a write that is done once.

    Attributes
    ----------
    application
        Who writes: a job, a query, a source.
    version
        Number of the write; a later write of the application has a greater one.
    """

    application: str
    version: int


@dataclass(frozen=True, slots=True)
class CommitExtras:
    """What the extra metadata of a commit keeps for its caller.

    Attributes
    ----------
    metadata
        Strings by key.
    rolling_keys, lookback
        Keys whose latest values are carried over, where ``metadata`` has none, and how many commits
        are searched for them.
    idempotency
        What makes the write one that is done once; ``None`` for a write like any other.
    takes_in
        The files of other writers whose rows the write brings, by format.
    """

    metadata: Mapping[str, str] = field(default_factory=dict)
    rolling_keys: tuple[str, ...] = ()
    lookback: int = 10
    idempotency: Idempotency | None = None
    takes_in: Mapping[str, TakenIn] = field(default_factory=dict)

    def given(
        self, metadata: Mapping[str, str] | None, idempotency: tuple[str, int] | None
    ) -> CommitExtras:
        """These with the arguments of a call, which win over options.

        Raises
        ------
        InvalidOptionError
            A key that is not the caller's to set, or something that is no string or no number.
        """
        extras = self
        if metadata:
            extras = replace(extras, metadata={**extras.metadata, **checked_metadata(metadata)})
        if idempotency is not None:
            extras = replace(extras, idempotency=_idempotency(idempotency))
        return extras

    def without_idempotency(self) -> CommitExtras:
        """These for a write that may be repeated."""
        return replace(self, idempotency=None)


def checked_metadata(metadata: Mapping[Any, Any]) -> Mapping[str, str]:
    """Extra metadata that a caller may set.

    Raises
    ------
    InvalidOptionError
        A key that is not the caller's to set, or a key or value that is no string.
    """
    for key, value in metadata.items():
        name = f"extra_metadata[{key!r}]"
        if not isinstance(key, str) or not isinstance(value, str):
            kind = type(value if isinstance(key, str) else key).__name__
            raise InvalidOptionError(name, kind, "keys and values are strings", "Pass its text.")
        if not key or key == SCHEMA_KEY or key.startswith(OWN_PREFIX):
            raise InvalidOptionError(
                name, value, "the table keeps this key itself", "Choose another key."
            )
    return metadata


def _idempotency(given: tuple[str, int]) -> Idempotency:
    match given:
        case (str(application), int(version)) if application.strip() and type(version) is int:
            return Idempotency(application.strip(), version)
    raise InvalidOptionError(
        "idempotency",
        given,
        "it is no name of an application with the number of a write",
        "Pass them as in idempotency=('orders', 17).",
    )
