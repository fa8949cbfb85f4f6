"""Versions, receipts and abilities of several formats together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote

from hudi_core.model.capability import Capability, FormatCapabilities
from hudi_core.model.format import FormatCommit

_LEFT_OUT: Final = frozenset(
    {
        Capability.STORAGE_PATH,
        Capability.SEVERAL_STORAGE_PATHS,
        Capability.SHARED_STORAGE_PATH,
    }
)
_IN_ITS_FOLDER: Final = "a table of several formats keeps all files in its folder"


@dataclass(frozen=True, slots=True)
class JointCommit(FormatCommit):
    """The receipts of several formats as one.

    ``each`` is in the order of the table's formats. ``version`` and ``details`` name all of them;
    there is no one ``location``.
    """

    each: Mapping[str, FormatCommit] = field(default_factory=dict)

    @classmethod
    def of(cls, each: Mapping[str, FormatCommit]) -> JointCommit:
        """Return the receipts as one."""
        version = join_versions({name: one.version for name, one in each.items()})
        details = {
            f"{name}.{key}": text for name, one in each.items() for key, text in one.details.items()
        }
        return cls(version, None, details, each)


def join_versions(versions: Mapping[str, str]) -> str:
    """One string of the versions of several formats, as ``name=version,...``."""
    return ",".join(f"{name}={quote(version, safe='')}" for name, version in versions.items())


def split_versions(text: str | None) -> dict[str, str]:
    """The versions in such a string, by format; none in any other."""
    parts = (one.partition("=") for one in (text or "").split(","))
    return {name: unquote(version) for name, sign, version in parts if sign and name and version}


def joint_capabilities(each: Mapping[str, FormatCapabilities]) -> FormatCapabilities:
    """The abilities that every one of several formats declares."""
    declared = frozenset.intersection(*(one.declared for one in each.values())) - _LEFT_OUT
    named = [one.promotions for one in each.values() if one.promotions is not None]
    reasons = {
        str(missing): "; ".join(
            f"the {name} format lacks it" + (f": {why}" if why else "")
            for name, one in each.items()
            if missing not in one
            for why in (one.reasons.get(missing, ""),)
        )
        for missing in Capability
        if missing not in declared
    }
    reasons |= dict.fromkeys(map(str, _LEFT_OUT), _IN_ITS_FOLDER)
    promotions = frozenset.intersection(*named) if named else None
    return FormatCapabilities(declared, promotions, reasons)
