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
    Two functions, to be assigned to ``__getattr__`` and ``__dir__`` of the module, which has an
    ``__all__``. They also know ``__version__``, that of the distribution.
    """

    def find(name: str) -> Any:
        owner = sys.modules[module]
        if name == "__version__":
            from importlib.metadata import version  # noqa: PLC0415 - few ask, and it takes time

            return version("hudi-core")
        if name not in homes:
            text = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=owner)
        value = getattr(import_module(homes[name]), name)
        setattr(owner, name, value)  # the next access does not come here
        return value

    def names() -> list[str]:
        owner = sys.modules[module]
        own = (name for name in vars(owner) if name.startswith("__"))
        return sorted({*own, *owner.__all__, "__version__"})

    return find, names
