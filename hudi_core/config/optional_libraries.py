"""Libraries that extras of the package install."""

from __future__ import annotations

import importlib
from typing import Any

from hudi_core.errors import InvalidOptionError


def require_library(module: str, extra: str, option: tuple[str, str], need: str) -> Any:
    """Import a module of a library that may be missing.

    ``option`` is name and text of the option that needs it; ``need`` is worded as in "metrics need
    prometheus-client".
    """
    try:
        # a part of a library may be loaded while the library itself is not to be had
        importlib.import_module(module.partition(".")[0])
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InvalidOptionError(
            *option,
            f"{need}, which is not installed",
            f"Run `pip install hudi-core[{extra}]`.",
        ) from error
