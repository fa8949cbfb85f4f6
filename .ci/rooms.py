"""Check the rooms of the library: sections of docstrings, names, lines of code.

Run by ``make lint``; what is public, and each room's budget, is in ``pyproject.toml`` under
``tool.rooms``. ``python .ci/rooms.py --counts`` prints the code lines of each room.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
SECTION: Final = re.compile(
    r"^ *(Parameters|Attributes|Returns|Yields|Raises|Warns|Notes|Examples)\n *-{3,}$",
    re.MULTILINE,
)
_NO_CODE: Final = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


class Module:
    """A file of the library, parsed once."""

    def __init__(self, path: Path) -> None:
        self.path = path.relative_to(ROOT)
        self.source = path.read_text(encoding="utf-8")
        self.tree = ast.parse(self.source)
        parts = self.path.with_suffix("").parts
        self.name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def room(self) -> str:
        """Package of the library, or a format; ``top`` for modules beside the packages."""
        first, *rest = self.path.parts
        if first != "hudi_core":
            return first if first != "plugins" else rest[0]
        return rest[0] if len(rest) > 1 else "top"

    def documented(self) -> Iterator[tuple[str, Documented]]:
        """Classes and functions, by the name of what they are in at the top of the module."""

        def within(node: ast.AST, top: str) -> Iterator[tuple[str, Documented]]:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, Documented):
                    yield top or child.name, child
                    yield from within(child, top or child.name)
                elif isinstance(child, ast.If | ast.Try):
                    yield from within(child, top)

        return within(self.tree, "")

    def code_lines(self) -> int:
        """Lines that hold code: no blank ones, comments and docstrings."""
        lines: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(self.source).readline):
            if token.type not in _NO_CODE:
                lines.update(range(token.start[0], token.end[0] + 1))
        for node in ast.walk(self.tree):
            body = getattr(node, "body", None)
            for one in body if isinstance(body, list) else ():
                # a docstring, or the string under an attribute that describes it
                is_text = isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
                if is_text and isinstance(one.value.value, str):
                    lines.difference_update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
        return len(lines)


def exported(modules: Mapping[str, Module], doors: list[str]) -> set[tuple[str, str]]:
    """Names that the public modules import from others, with the modules."""
    return {
        (node.module, name.name)
        for door in doors
        for node in ast.walk(modules[door].tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for name in node.names
    }


def sections(modules: Mapping[str, Module], public: Mapping[str, list[str]]) -> Iterator[str]:
    """Docstrings with sections of what strangers do not read."""
    names = exported(modules, public["doors"])
    for module in modules.values():
        if module.path.as_posix().startswith(tuple(public["rooms"])):
            continue
        packages = {module.name, module.name.rpartition(".")[0]}
        for top, node in module.documented():
            is_public = any((package, top) in names for package in packages)
            if not is_public and SECTION.search(ast.get_docstring(node, clean=False) or ""):
                yield (
                    f"{module.path}:{node.lineno}: {node.name} is private; a first line and, where "
                    "needed, a sentence that says why are enough"
                )


def doubled_names(modules: Mapping[str, Module]) -> Iterator[str]:
    """Public classes whose name another module of the same package has given to another one."""
    homes: dict[tuple[str, str], list[Path]] = {}
    for module in modules.values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                package = module.name.partition(".")[0]
                homes.setdefault((package, node.name), []).append(module.path)
    for (_, name), paths in homes.items():
        if len(paths) > 1:
            yield f"{paths[0]}: {paths[1]} has a class {name}, too: one name, one thing"


def doubled_helpers(modules: Mapping[str, Module], shared: str) -> Iterator[str]:
    """What a module of the tests calls like a helper that all of them share.

    A fixture may: tests take it as an argument, where its name says what it is for them.
    """
    names = {"table", *(name for name, _ in _assigned(modules[shared]) if name[0] != "_")}
    package = shared.partition(".")[0] + "."
    for module in modules.values():
        if not module.name.startswith(package) or module.name == shared:
            continue
        for name, node in _assigned(module):
            if name in names and not _is_fixture(node):
                yield (
                    f"{module.path}:{node.lineno}: {name} is for {modules[shared].path}; import "
                    "it, or name what is special about this one"
                )


def _assigned(module: Module) -> Iterator[tuple[str, ast.stmt]]:
    """Names that a module gives to functions and values of its own."""
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = (one for target in targets for one in ast.walk(target))
            yield from ((one.id, node) for one in names if isinstance(one, ast.Name))


def _is_fixture(node: ast.stmt) -> bool:
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return any("fixture" in ast.unparse(one) for one in decorators)


def over_budget(lines: Mapping[str, int], budget: Mapping[str, int]) -> Iterator[str]:
    """Rooms that hold more code than they may."""
    for room, count in lines.items():
        if room not in budget:
            yield f"pyproject.toml: room {room} has no budget; it holds {count} lines of code"
        elif count > budget[room]:
            yield (
                f"pyproject.toml: room {room} holds {count} lines of code, its budget is "
                f"{budget[room]}; delete what it makes superfluous, or raise it and say why"
            )
    yield from (f"pyproject.toml: there is no room {room}" for room in budget if room not in lines)


def _modules(folders: list[str]) -> dict[str, Module]:
    files = sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return {module.name: module for module in map(Module, files)}


def main() -> None:
    """Print what is wrong, and fail then."""
    settings: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    rules = settings["tool"]["rooms"]
    modules, others = (_modules(rules[name]) for name in ("folders", "others"))
    lines = Counter[str]()
    for module in modules.values():
        lines[module.room] += module.code_lines()
    if "--counts" in sys.argv[1:]:
        for room, count in lines.most_common():
            print(f"{room} = {count}")
        print(f"# {lines.total()}")
        return
    found = [
        *sections(modules | others, rules["public"]),
        *doubled_names(modules),
        *doubled_helpers(others, "tests.tables"),
        *over_budget(lines, rules["budget"]),
    ]
    if found:
        raise SystemExit("\n".join(found))


if __name__ == "__main__":
    main()
