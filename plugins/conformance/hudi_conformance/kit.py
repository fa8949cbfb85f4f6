"""Lazy imports of the kit by its command: help comes without pytest."""

from typing import TYPE_CHECKING

from hudi_core.lazy import lazy_names

if TYPE_CHECKING:
    from hudi_conformance.formats import CHECKS
    from hudi_conformance.formats.registered import registered
    from hudi_conformance.formats.report import run_format

__all__ = ["CHECKS", "registered", "run_format"]

_HOMES = {
    "CHECKS": "hudi_conformance.formats",
    "registered": "hudi_conformance.formats.registered",
    "run_format": "hudi_conformance.formats.report",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
