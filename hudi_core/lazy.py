"""Public names whose modules are imported at first use (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    module: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a module with lazy names.

    Parameters
    ----------
    module
        Name of the module that offers the names.
    homes
        The module that defines each name. Type checkers need the same imports under
        ``TYPE_CHECKING``.

    Returns
    -------
    Two functions, to be assigned to ``__getattr__`` and ``__dir__`` of the module.
    """

    def find(name: str) -> Any:
        owner = sys.modules[module]
        if name not in homes:
            text = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=owner)
        value = getattr(import_module(homes[name]), name)
        setattr(owner, name, value)  # the next access does not come here
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[module]), *homes})

    return find, names
