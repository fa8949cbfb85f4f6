"""What a partition of the metadata table is like is said in its module, and asked of its value."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from hudi_core.metadata import partition_types
from hudi_core.metadata.log.records import RecordType
from hudi_core.metadata.partitions.names import BUILDABLE, Check
from hudi_core.metadata.partitions.registry import PARTITIONS, partition_of

REPOSITORY = Path(__file__).resolve().parents[2]
ROOMS = ("hudi_core", "native_format", "iceberg_format", "delta_format", "pyspark_hudi")
HOME = "hudi_core/metadata/partitions/"
NAMES = {one.name for one in PARTITIONS}
CONSTANTS = {
    name
    for name, value in vars(partition_types).items()
    if isinstance(value, str) and value in NAMES
}
# below the values: how files are named, found and merged, and who reads two partitions as one
ALLOWED = {
    "hudi_core/metadata/log/completeness.py",
    "hudi_core/metadata/merging.py",
    "hudi_core/metadata/partition_types.py",
    "hudi_core/metadata/snapshot.py",
}


@pytest.mark.parametrize(
    "text",
    [
        "if partition == RECORD_INDEX: pass",
        "x = kept != 'column_stats'",
        "x = partition in (COLUMN_STATS, PARTITION_STATS)",
        "x = name.startswith(SECONDARY_INDEX)",
        "x = name.removeprefix('secondary_index_')",
        "x = {FILES: 1, 'other': 2}",
        "match name:\n    case 'bloom_filters': pass",
        "x = record.type == RecordType.PARTITION_STATS",
        "x = {RecordType.COLUMN_STATS: 1}",
    ],
)
def test_a_switch_is_seen(text: str) -> None:
    assert [*switches(ast.parse(text))]


@pytest.mark.parametrize(
    "text",
    [
        "x = RECORD_INDEX in stored.complete",
        "x = snapshot.lookup(RECORD_INDEX, keys)",
        "x = MetadataRecord(key, RecordType.RECORD_INDEX, payload)",
        "x = {'files': 1, 'rows': 2}['rows']",
    ],
)
def test_who_works_with_one_partition_does_not_switch(text: str) -> None:
    assert not [*switches(ast.parse(text))]


def test_no_partition_is_told_from_others_by_its_name() -> None:
    found = {
        name
        for room in ROOMS
        for path in sorted((REPOSITORY / room).rglob("*.py"))
        if not (name := str(path.relative_to(REPOSITORY))).startswith(HOME)
        and [*switches(ast.parse(path.read_text(encoding="utf-8")))]
    }
    assert found == ALLOWED


def test_every_partition_is_a_value() -> None:
    assert len(NAMES) == len(PARTITIONS)
    for one in PARTITIONS:
        some = f"{one.name}x" if one.is_of_column else one.name
        found = partition_of(some)
        assert type(found) is type(one)
        assert found is not None
        assert found.name == some
        assert one.made_from is None or one.made_from in NAMES
        assert one.read_through is None or one.read_through in NAMES
    assert partition_of("vector_index_x") is None


def test_the_command_line_shows_every_partition_and_every_check() -> None:
    shown = [f"{one.name}<name>" * one.is_of_column or one.name for one in PARTITIONS]
    required = {one.name for one in PARTITIONS if one.is_required}
    assert {*BUILDABLE} == {*shown} - required
    checks = [check for one in PARTITIONS for check in one.checks]
    assert sorted(checks, key=str) == sorted(Check, key=str)


def switches(tree: ast.AST) -> Iterator[ast.AST]:
    """Where one partition is treated otherwise than another."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare():
                if any(map(is_name, compared(node))):
                    yield node
            case ast.Call(func=ast.Attribute(attr="startswith" | "removeprefix"), args=args):
                if any(map(is_name, args)):
                    yield node
            case ast.MatchValue(value=value):
                if is_name(value):
                    yield node
            case ast.Dict(keys=keys):
                if any(is_name(one) for one in keys if one is not None and not is_text(one)):
                    yield node
            case _:
                pass


def compared(node: ast.Compare) -> Iterator[ast.expr]:
    """What is compared for equality; what is looked for in some collection is not."""
    if not any(isinstance(one, ast.In | ast.NotIn) for one in node.ops):
        yield node.left
    for one in node.comparators:
        yield from one.elts if isinstance(one, ast.Tuple | ast.List | ast.Set) else [one]


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant)


def is_name(node: ast.AST) -> bool:
    match node:
        case ast.Name(id=name):
            return name in CONSTANTS
        case ast.Attribute(value=ast.Name(id="RecordType"), attr=name):
            return name in RecordType.__members__
        case ast.Constant(value=str(text)):
            return text in NAMES
    return False
