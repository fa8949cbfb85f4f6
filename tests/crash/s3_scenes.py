"""What the rig does to tables on a store of S3's protocol, and what goes wrong meanwhile."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from tests.crash.s3_faults import S3Fault
from tests.tables import FORMATS

ON_S3: Final = "@s3"
"""Ends the names of formats in the summary."""


class S3Wound(NamedTuple):
    """A writer that died before the action came: what it did, and the last of the requests of this
    name that it did not get to send."""

    action: str
    request: str


@dataclass(frozen=True, slots=True)
class S3Scene:
    """A table, and what is done to it; see :class:`~tests.crash.scenes.Scene`."""

    action: str
    wounds: tuple[S3Wound, ...] = ()
    formats: Collection[str] = FORMATS
    is_repeated: bool = False
    is_new: bool = False


_COMPLETES: Final = S3Wound("upsert", "PUT timeline/N_N.commit if absent")
_TELLS_DELTA: Final = S3Wound("upsert", "PUT _delta_log/N.json if absent")
_TELLS_ICEBERG: Final = S3Wound("upsert", "PUT metadata/vN.metadata.json if absent")
S3_SCENES: Final[Mapping[str, S3Scene]] = {
    **{name: S3Scene(name) for name in ("insert", "upsert", "delete", "rollback")},
    **{name: S3Scene(name) for name in ("clean", "cluster", "savepoint", "restore")},
    "recover_recorded": S3Scene("other", (_COMPLETES,)),
    "recover_unpublished": S3Scene("other", (_TELLS_DELTA,), ("delta",)),
    "recover_unlisted": S3Scene("other", (_TELLS_ICEBERG,), ("iceberg",)),
    "to_iceberg": S3Scene("to_iceberg", (), ("native",), True),
    "to_delta": S3Scene("to_delta", (), ("native",), True),
    "to_native": S3Scene("to_native", (), ("iceberg", "delta"), True),
    "rebuild_metadata": S3Scene("repair_metadata", (), ("native",)),
    "create": S3Scene("create", is_repeated=True, is_new=True),
}


class S3Case(NamedTuple):
    """What goes wrong, where; see :class:`~tests.crash.rig.Case`."""

    format_name: str
    scene: str
    fault: S3Fault | None = None
    mutant: str | None = None

    def __str__(self) -> str:
        fault = "" if self.fault is None else f"{self.fault.how} {self.fault.at}"
        lands = f"+{self.fault.lands}" if self.fault is not None and self.fault.lands else ""
        return " ".join(filter(None, (self.format_name, self.scene, fault + lands, self.mutant)))

    @property
    def plugin(self) -> str:
        """Name of the format."""
        return self.format_name.removesuffix(ON_S3)
