"""The messages of errors, as the code that raises them has them."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeGuard

import hudi_core.errors as tree
from hudi_core.errors import CommitStateUnknownError, HudiError

PACKAGES: Final = ("hudi_core", "native_format", "iceberg_format", "delta_format")
KINDS: Final[Mapping[str, type[HudiError]]] = {
    name: kind
    for name in tree.__all__
    if isinstance(kind := getattr(tree, name), type) and issubclass(kind, HudiError)
}
_SHORTEST: Final = 12
"""Strings of fewer characters are values rather than sentences."""
_WHAT: Final = ("what", "reason", "evidence")
"""Arguments of errors that say what is wrong."""
_AGAIN: Final = " The same call may succeed when it is made again."
Message = tuple[str, str]
"""What is wrong, and what to do; either may be empty."""


def listing(root: Path) -> str:
    """A section for each error: what it means, its messages, and what they advise."""
    found: dict[str, set[Message]] = defaultdict(set)
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            for kind, message in _messages(ast.parse(path.read_text(encoding="utf-8"))):
                found[kind].add(message)
    return "\n".join(_section(name, found.get(name, set())) for name in sorted(KINDS))


def _section(name: str, messages: set[Message]) -> str:
    kind = KINDS[name]
    text = " ".join((kind.__doc__ or "").split("\n\n")[0].split())
    again = _AGAIN if kind.retryable else ""
    if kind is CommitStateUnknownError:
        again = " Look at the table before the same call is made again."
    lines = [f"### {name}\n", f"{text}{again}\n"]
    if messages:
        lines.append("| message | what to do |\n| --- | --- |")
        lines += [f"| {_cell(what)} | {_cell(advice)} |" for what, advice in sorted(messages)]
    return "\n".join(lines) + "\n"


def _messages(module: ast.Module) -> Iterator[tuple[str, Message]]:
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef) and node.name in KINDS:
            for call in ast.walk(node):
                if _is_init(call):
                    yield from _of_call(node.name, HudiError, call)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            yield from _of_call(name, KINDS[name], node) if name in KINDS else ()


def _is_init(node: ast.AST) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "__init__"
    )


def _of_call(name: str, kind: type[HudiError], call: ast.Call) -> Iterator[tuple[str, Message]]:
    parameters = inspect.signature(kind).parameters
    usual = parameters["hint"].default if "hint" in parameters else ""
    given = dict(zip(parameters, call.args, strict=False))
    given |= {one.arg: one.value for one in call.keywords if one.arg is not None}
    what = "".join(_text(given[one]) for one in _WHAT if one in given)
    if len(what) >= _SHORTEST:
        advice = _text(given["hint"]) if "hint" in given else usual
        yield name, (what, advice if isinstance(advice, str) else "")


def _text(node: ast.expr) -> str:
    """A string with its values as names in braces; empty for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_part(part) for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    return ""


def _part(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return str(node.value)
    value = node.value if isinstance(node, ast.FormattedValue) else node
    name = ast.unparse(value).rpartition(".")[2]
    return f"{{{name}}}" if name.isidentifier() else "..."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "&#124;").replace("<", "&lt;").replace("*", "\\*")
