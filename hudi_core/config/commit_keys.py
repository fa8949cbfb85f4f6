"""Options for the extra metadata of a commit, and for idempotent writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hudi_core.config.key import ConfigKey, Group, is_secret_name
from hudi_core.config.parsers import integer, names, optional, text_or_none
from hudi_core.errors import InvalidOptionError
from hudi_core.model.extras import CommitExtras, Idempotency, checked_metadata

_MOST: Final = 10**18 - 1


def prefix(text: str) -> str:
    """Parse the beginning of names."""
    if not text:
        raise ValueError("every option would be kept with the table, credentials too")
    return text


METADATA_PREFIX: Final = ConfigKey(
    key="hoodie.datasource.write.commitmeta.key.prefix",
    default="_",
    parse=prefix,
    doc="Options whose names begin with this are kept in the extra metadata of the commit, under "
    "their whole names.",
    group=Group.WRITE,
)
ROLLING_KEYS: Final[ConfigKey[tuple[str, ...]]] = ConfigKey(
    key="hoodie.write.rolling.metadata.keys",
    default=(),
    default_text="(none)",
    parse=names,
    doc="Keys of extra metadata, separated by commas, whose latest values are carried over to the "
    "commit. The checkpoints of Hudi Streamer, of Spark's streaming sink and of Kafka Connect "
    "always are, from the commit before.",
    group=Group.WRITE,
)
ROLLING_LOOKBACK: Final = ConfigKey(
    key="hoodie.write.rolling.metadata.timeline.lookback.commits",
    default=10,
    parse=integer(1),
    doc="How many commits are looked at for the keys of hoodie.write.rolling.metadata.keys.",
    group=Group.WRITE,
)
APPLICATION: Final = ConfigKey(
    key="hoodie.write.idempotency.application",
    aliases=("txnAppId",),
    default=None,
    default_text="(none)",
    parse=text_or_none,
    doc="Name of the application whose write is done once, whatever is repeated: of each "
    "application, a version that is not greater than the last one is not written again. For one "
    "write; the same as `idempotency=(application, version)`.",
    group=Group.WRITE,
    hudi_default="(no such option)",
    reason="After an unknown outcome a write can be repeated without a look at the table.",
)
VERSION: Final = ConfigKey(
    key="hoodie.write.idempotency.version",
    aliases=("txnVersion",),
    default=None,
    default_text="(none)",
    parse=optional(integer(-_MOST, _MOST)),
    doc="Number of the write of hoodie.write.idempotency.application.",
    group=Group.WRITE,
)

KEYS: Final[tuple[ConfigKey[Any], ...]] = (
    METADATA_PREFIX,
    ROLLING_KEYS,
    ROLLING_LOOKBACK,
    APPLICATION,
    VERSION,
)


def commit_extras(options: Mapping[str, str]) -> CommitExtras:
    """The view of the options for the extra metadata of a commit.

    Raises
    ------
    InvalidOptionError
        A value that cannot be used, a key that is not the caller's to set, or a credential.
    """
    return CommitExtras(
        _metadata(options),
        ROLLING_KEYS.read(options),
        ROLLING_LOOKBACK.read(options),
        _idempotency(options),
    )


def _metadata(options: Mapping[str, str]) -> Mapping[str, str]:
    begin = METADATA_PREFIX.read(options)
    found = {name: text for name, text in options.items() if name.startswith(begin)}
    for name in filter(is_secret_name, found):
        raise InvalidOptionError(
            METADATA_PREFIX.key,
            begin,
            f"{name} would be kept with the table, for all its readers to see",
            "Choose a prefix that no credential has.",
        )
    return checked_metadata(found)


def _idempotency(options: Mapping[str, str]) -> Idempotency | None:
    application, version = APPLICATION.read(options), VERSION.read(options)
    if application is None and version is None:
        return None
    if application is None or version is None:
        missing, given = (APPLICATION, VERSION) if application is None else (VERSION, APPLICATION)
        raise InvalidOptionError(
            missing.key, None, f"{given.key} has no meaning without it", f"Set {missing.key} too."
        )
    return Idempotency(application, version)
