"""The public interface changes only on purpose: `make api` accepts it as it is now."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

SNAPSHOT = Path(__file__).with_name("public_api.txt")
PUBLIC_MODULES = ("hudi_core", "hudi_core.spi", "hudi_core.spi.files", "hudi_core.spi.testing")
OURS = "hudi_core"


def describe() -> str:
    """Return one line for every public name, member and signature."""
    lines = [line for module in PUBLIC_MODULES for line in describe_module(module)]
    return "\n".join(lines) + "\n"


def describe_module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    for public in sorted(module.__all__):
        value = getattr(module, public)
        yield from describe_value(f"{name}.{public}", value)


def describe_value(name: str, value: object) -> Iterator[str]:
    home = getattr(value, "__module__", "") or ""
    if inspect.isclass(value) and is_ours(home):
        yield f"class {name}({', '.join(base.__qualname__ for base in value.__bases__)})"
        yield from describe_members(name, value)
    elif inspect.isroutine(value) and is_ours(home):
        yield f"{name}{signature(value)}"
    else:
        # another library's objects change with its releases: the name is what is promised
        yield f"{name}: {type(value).__qualname__}"


def describe_members(name: str, kind: type) -> Iterator[str]:
    yield f"  {name}.__init__{signature(kind)}"
    own = {
        member
        for base in kind.__mro__
        if is_ours(base.__module__)
        for member in vars(base)
        if not member.startswith("_")
    }
    for member in sorted(own):
        value = inspect.getattr_static(kind, member)
        if isinstance(value, classmethod | staticmethod):
            yield f"  {type(value).__name__} {name}.{member}{signature(value.__func__)}"
        elif isinstance(value, cached_property):
            yield f"  {name}.{member}: property{signature(value.func)}"
        elif inspect.isroutine(value):
            yield f"  {name}.{member}{signature(value)}"
        elif isinstance(value, property):
            yield f"  {name}.{member}: property{signature(value.fget)}"
        else:
            yield f"  {name}.{member}: {type(value).__qualname__}"


def signature(value: object) -> str:
    """Return the parameters and result, without what differs from run to run."""
    if not callable(value):
        return "(...)"
    try:
        text = str(inspect.signature(value))
    except (TypeError, ValueError):  # made in C: it has none
        return "(...)"
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def is_ours(module: str) -> bool:
    return module.partition(".")[0] == OURS


def test_the_public_interface_is_the_accepted_one() -> None:
    accepted = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    assert describe().splitlines() == accepted, "wanted? then: make api"


if __name__ == "__main__":
    SNAPSHOT.write_text(describe(), encoding="utf-8")
