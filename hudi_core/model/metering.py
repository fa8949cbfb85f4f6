"""Measurements of the metadata table, and their collector (RFC-15)."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol


class Metric(StrEnum):
    """A measurement, by RFC-15's name without prefix and suffix.

    The prefix is ``HoodieMetadata.``; the suffix names what is measured of it.
    """

    INITIALIZE = "initialize"
    """The first making of the metadata table."""
    SYNC = "sync"
    """Recording an action's changes in it."""
    LOOKUP_PARTITIONS = "lookup_partitions"
    """Asking it for the partitions."""
    LOOKUP_FILES = "lookup_files"
    """Asking it for the files of partitions."""
    SCAN = "scan"
    """Reading the log files of one of its file groups."""
    VALIDATE_PARTITIONS = "validate_partitions"
    """Listing the partitions in the storage, to compare them."""
    VALIDATE_FILES = "validate_files"
    """Listing files in the storage, to compare them."""
    VALIDATE_ERRORS = "validate_errors"
    """Differences that comparing found."""


class Meter(Protocol):
    """Takes measures down; never fails the work that is measured."""

    def count(self, metric: Metric, times: int = 1) -> None:
        """Note that something took place so many times."""
        ...

    def time(self, metric: Metric) -> AbstractContextManager[None]:
        """Record the block's count and duration, unless it fails."""
        ...


@dataclass(frozen=True, slots=True)
class NoMeter:
    """Takes nothing down."""

    def count(self, metric: Metric, times: int = 1) -> None:
        """Do nothing."""

    def time(self, metric: Metric) -> AbstractContextManager[None]:  # noqa: ARG002 - of no interest
        """Return a block that does nothing more."""
        return nullcontext()


NO_METER: Final = NoMeter()
