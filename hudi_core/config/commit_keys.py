"""Options for the extra metadata of a commit, and for idempotent writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hudi_core.config.options import Group, Option, Options, is_secret_name
from hudi_core.config.parsers import integer, optional
from hudi_core.errors import InvalidOptionError
from hudi_core.model.extra_metadata import CommitExtras, Idempotency, checked_metadata

_MOST: Final = 10**18 - 1


def prefix(text: str) -> str:
    """Parse the beginning of names."""
    if not text:
        raise ValueError("every option would be kept with the table, credentials too")
    return text


class CommitConfig(Options, group=Group.WRITE):
    """What a commit keeps beside its files; :func:`commit_extras` makes it of these."""

    metadata_prefix: Option[str] = Option(
        "hoodie.datasource.write.commitmeta.key.prefix", default="_", parse=prefix
    )
    """Options whose names begin with this are kept in the extra metadata of the commit, under their
    whole names."""
    rolling_keys: Option[tuple[str, ...]] = Option("hoodie.write.rolling.metadata.keys", default=())
    """Keys of extra metadata, separated by commas, whose latest values are carried over to the
    commit. The checkpoints of Hudi Streamer, of Spark's streaming sink and of Kafka Connect always
    are, from the commit before."""
    rolling_lookback: Option[int] = Option(
        "hoodie.write.rolling.metadata.timeline.lookback.commits", default=10
    )
    """How many commits are looked at for the keys of hoodie.write.rolling.metadata.keys."""
    application: Option[str | None] = Option(
        "hoodie.write.idempotency.application",
        aliases=("txnAppId",),
        hudi_default="(no such option)",
        reason="A write made with it can be repeated after an unknown outcome without a look at "
        "the table.",
    )
    """Name of the application whose write is done once, whatever is repeated: of each application,
    a version that is not greater than the last one is not written again. For one write; the same as
    `idempotency=(application, version)`."""
    version: Option[int | None] = Option(
        "hoodie.write.idempotency.version",
        parse=optional(integer(-_MOST, _MOST)),
        aliases=("txnVersion",),
    )
    """Number of the write of hoodie.write.idempotency.application."""


def commit_extras(options: Mapping[str, str]) -> CommitExtras:
    """The extra metadata of a commit, as options say it.

    Refuses keys that are not the caller's to set, and credentials.
    """
    config = CommitConfig.from_options(options)
    return CommitExtras(
        _metadata(options, config.metadata_prefix),
        config.rolling_keys,
        config.rolling_lookback,
        _idempotency(config.application, config.version),
    )


def _metadata(options: Mapping[str, str], begin: str) -> Mapping[str, str]:
    found = {name: text for name, text in options.items() if name.startswith(begin)}
    for name in filter(is_secret_name, found):
        raise CommitConfig.metadata_prefix.refused(
            begin,
            f"{name} would be kept with the table, for all its readers to see",
            "Choose a prefix that no credential has.",
        )
    return checked_metadata(found)


def _idempotency(application: str | None, version: int | None) -> Idempotency | None:
    if application is None and version is None:
        return None
    if application is None or version is None:
        missing, given = CommitConfig.application.key, CommitConfig.version.key
        if version is None:
            missing, given = given, missing
        raise InvalidOptionError(
            missing, None, f"{given} has no meaning without it", f"Set {missing} too."
        )
    return Idempotency(application, version)
