"""Docstrings begin with the thing in few words, identifiers are words of the glossary, and prose
has none of the words that engineers of databases do not use."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = (
    "hudi_core",
    "iceberg_format",
    "delta_format",
    "plugins/sql_format/hudi_sql_format",
    "native_format",
    "pyspark_hudi",
    "pyspark_org_apache_hudi",
)
LONGEST = 12
CIRCUMLOCUTION = re.compile(r"Return what\b|Tell\b")

GONE = frozenset(
    {
        *("anew", "door", "doors", "misfit", "moment", "moments", "rehearsal", "rehearse", "said"),
        *("saying", "settle", "settled", "settlement", "strange", "told", "truth", "twin", "twins"),
        "upkeep",
    }
)
"""Words that identifiers do not use; ``docs/glossary.md`` has the field's."""
ANY_GONE = re.compile("|".join(sorted(GONE)), re.IGNORECASE)

ANY_DIALECT = re.compile("tells|whoever|stands|texts", re.IGNORECASE)
DIALECT = re.compile(rf"\b(?:{ANY_DIALECT.pattern})\b", re.IGNORECASE)
"""Words that prose does not use: it has shows, records, a writer, remains, means, strings."""
CODE = re.compile(r"``[^`]+``|`[^`\n]+`")
"""Names of code within prose, which keep their words."""
ALLOWED: frozenset[tuple[str, str]] = frozenset()
"""Files and words of :data:`DIALECT` that are right there, each with the reason in a comment."""
KIT = ROOT / "plugins" / "conformance" / "hudi_conformance"
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/*.md", "plugins/*.md", "plugins/*/*.md")
    for path in ROOT.glob(pattern)
)

FILES = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


def room_of(path: Path) -> str:
    """The folder below ``hudi_core``, or the package."""
    package, *parts = path.relative_to(ROOT).parts
    return parts[0] if package == "hudi_core" and len(parts) > 1 else package


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A module and its statements, at any depth; expressions hold no docstring."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield from statements(child)


def long_beginnings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Docstrings whose first paragraph is not one short line."""
    for node in statements(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        first, _, _ = (ast.get_docstring(node) or ".").partition("\n\n")
        is_line = "\n" not in first and first.endswith(".")
        if not is_line or len(first.split()) > LONGEST or CIRCUMLOCUTION.match(first):
            yield node.body[0].lineno, " ".join(first.split())


@cache
def words(name: str) -> frozenset[str]:
    """The words of an identifier, in lower case."""
    return frozenset(re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", name).lower()))


def gone_words(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Identifiers of a module with a word that has gone."""
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.arg(arg=name)
                | ast.keyword(arg=str(name))
                | ast.Name(id=name)
                | ast.Attribute(attr=name)
            ) if words(name) & GONE:
                yield node.lineno, name


def violations(room: str) -> Iterator[str]:
    """All that is against the two rules in a room."""
    for path in FILES:
        if room_of(path) == room:
            where, source = path.relative_to(ROOT), path.read_text(encoding="utf-8")
            tree = ast.parse(source)
            if words(path.stem) & GONE:
                yield f"{where}: the name of the module"
            # the names of a module are looked at where such a word is in it at all
            gone = gone_words(tree) if ANY_GONE.search(source) else ()
            for line, text in (*long_beginnings(tree), *gone):
                yield f"{where}:{line}: {text}"


def prose_of_code(source: str) -> Iterator[tuple[int, str]]:
    """Docstrings, other strings and comments, line by line, where a word of the dialect is."""
    if not ANY_DIALECT.search(source):
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for number, line in enumerate(node.value.split("\n")):
                yield node.lineno + number, line
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def dialect(where: str, prose: Iterable[tuple[int, str]]) -> Iterator[str]:
    """Words of the dialect in lines of prose."""
    for number, line in prose:
        for word in DIALECT.findall(CODE.sub("", line)):
            if (where, word.lower()) not in ALLOWED:
                yield f"{where}:{number}: {word}: {line.strip()}"


@pytest.mark.parametrize("room", sorted({room_of(path) for path in FILES}))
def test_a_room_has_plain_words(room: str) -> None:
    found = list(violations(room))
    assert not found, "\n".join(found)


def test_code_is_in_the_words_of_the_field() -> None:
    found = [
        line
        for path in (*FILES, *sorted(KIT.rglob("*.py")))
        for line in dialect(
            str(path.relative_to(ROOT)), prose_of_code(path.read_text(encoding="utf-8"))
        )
    ]
    assert not found, "\n".join(found)


def test_pages_are_in_the_words_of_the_field() -> None:
    found = [
        line
        for path in PAGES
        for line in dialect(
            str(path.relative_to(ROOT)), enumerate(path.read_text(encoding="utf-8").split("\n"), 1)
        )
    ]
    assert {"README.md", "docs/index.md", "plugins/README.md"} <= {
        str(path.relative_to(ROOT)) for path in PAGES
    }
    assert not found, "\n".join(found)


def test_the_rules_find_what_they_are_for() -> None:
    lines = [*['"""' + "word " * 12 + 'word."""'], "def settle(anew):", '    """Return what is."""']
    tree = ast.parse("\n".join([*lines, "    x.moments = upkeep(doors=Misfit)"]))
    assert [line for line, _ in long_beginnings(tree)] == [1, 3]
    assert {name for _, name in gone_words(tree)} == {
        "settle", "anew", "moments", "upkeep", "doors", "Misfit",
    }  # fmt: skip
    assert words("_RehearsalOfAnew2") == {"rehearsal", "of", "anew"}


def test_the_dialect_is_found_in_prose_alone() -> None:
    source = (
        'def f(texts):\n    """What it tells;\n    ``texts`` are names."""\n'
        '    # whoever calls\n    return f"{texts} Stands"\n'
    )
    found = list(dialect("a.py", prose_of_code(source)))
    assert sorted(line.split(": ")[:2] for line in found) == [
        ["a.py:2", "tells"], ["a.py:4", "whoever"], ["a.py:5", "Stands"],
    ]  # fmt: skip
    page = [(1, "`texts` and partition_texts of all texts")]
    assert list(dialect("a.md", page)) == [f"a.md:1: texts: {page[0][1]}"]
