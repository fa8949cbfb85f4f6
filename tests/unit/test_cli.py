"""The command line: examples that run, commands of other distributions, and formats."""

from __future__ import annotations

import inspect
import json
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
from typer.testing import CliRunner

import hudi_core as hudi
from hudi_core.cli import app
from hudi_core.cli.app import EXAMPLES, HEADING
from hudi_core.config.kinds import KeyGeneratorType, MergeOnReadMode, TableType
from hudi_core.config.support import NOT_BUILT, require_writable_table
from hudi_core.config.table import TableConfig
from hudi_core.config.timebased import time_based
from hudi_core.errors import CommandConflictError, CommandLoadError, UnsupportedTableError
from hudi_core.extension.registry import installed_entry_points
from hudi_core.model.capability import Capability
from hudi_core.plugin.capability import table_needs
from tests.cli_runs import run, run_json
from tests.tables import copied, new_table

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "city": ["Rome", "Oslo"], "fare": [12.5, 9.0]})
ELSEWHERE = ("sync ", "serve-trino", "metadata set")
"""Commands that need a server, run until they are stopped, or only refuse."""
MADE_UP = ("20260131120000000", "s3://")
"""What examples name and no test has."""


def commands(group: Any, above: str = "") -> Iterator[str]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{above}{name} ")
        else:
            yield f"{above}{name}"


def test_every_command_has_examples() -> None:
    assert set(EXAMPLES) == set(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", EXAMPLES)
def test_help_shows_them(name: str) -> None:
    result = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0
    shown = result.stdout.partition(HEADING)[2]
    assert [line in shown for line in EXAMPLES[name]] == [True] * len(EXAMPLES[name])


RUN = [
    (name, line)
    for name, lines in EXAMPLES.items()
    for line in lines
    if not name.startswith(ELSEWHERE) and not any(one in line for one in MADE_UP)
]


def test_most_of_them_are_run() -> None:
    assert len(RUN) > 40


@pytest.mark.parametrize(("name", "line"), RUN, ids=[line for _, line in RUN])
def test_examples_run(
    name: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(name, line)
    program, *arguments = shlex.split(line)
    assert (program, line.split()[1 : 1 + len(name.split())]) == ("hudi", name.split())
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output


def prepare(name: str, line: str) -> None:
    """What the example's paths hold before it runs."""
    pq.write_table(ROWS, "rows.parquet")
    for folder in ("incoming", "files"):
        Path(folder).mkdir()
        pq.write_table(ROWS, f"{folder}/rows.parquet")
    options = {"hoodie.metadata.record.index.enable": "true"} if "lookup" in name else {}
    if name == "metadata index":
        options = {"hoodie.metadata.index.column.stats.enable": "true"}
    if name == "compact":
        options = {"hoodie.table.type": "MERGE_ON_READ"}
    if name == "metadata create":
        options = {"hoodie.metadata.enable": "false"}
    for path in ("trips", "arrived") if name != "ingest" else ("trips",):
        copied(path, written_twice, options)


def written_twice(path: str, options: dict[str, str]) -> hudi.Table:
    table = new_table(path, ROWS, options)
    table.upsert(ROWS)
    return table


Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install distributions as pip does: a module and the metadata that names its entry points."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)
    modules: list[str] = []

    def install(distribution: str, entry_points: dict[str, str], source: str) -> None:
        module = distribution.replace("-", "_")
        modules.append(module)
        (site / f"{module}.py").write_text(source)
        info = site / f"{module}-1.0.dist-info"
        info.mkdir()
        metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
        (info / "METADATA").write_text(metadata)
        lines = [f"{name} = {module}:{target}" for name, target in entry_points.items()]
        (info / "entry_points.txt").write_text("\n".join(["[hudi.commands]", *lines, ""]))

    yield install
    for module in modules:
        sys.modules.pop(module, None)


GOOD = """
import typer
from hudi_core.errors import *

single = typer.Typer()

@single.command()
def polish(path: str, fail: bool = False) -> None:
    "Clean a table."
    if fail:
        raise TableServiceError("Nothing can be polished", "Wait.")
    typer.echo(f"polished {path}")

group = typer.Typer(help="Look into metadata.")

@group.command()
def files() -> None:
    typer.echo("files")

@group.command()
def unknown(json: bool = False) -> None:
    raise CommitStateUnknownError("The commit may have happened", "Look at the timeline.")

@group.command()
def incomplete() -> None:
    raise IncompleteCommitError("It was taken back", "Write again.")

@group.command()
def invalid() -> None:
    from hudi_core.cli.exit_codes import ExitCode
    raise typer.Exit(ExitCode.VALIDATION_FAILED)

@group.command()
def defect(json: bool = False) -> None:
    raise KeyError("some\\nkey")

@group.command()
def pipe() -> None:
    raise BrokenPipeError(32, "Broken pipe")

@group.command()
def warn() -> None:
    import warnings
    warnings.simplefilter("default")
    warnings.warn("this option is old")
"""


def test_commands_and_groups_of_other_distributions_run(install: Install) -> None:
    install("good", {"polish": "single", "lineage": "group"}, GOOD)
    assert run("polish", "here").stdout == "polished here\n"
    assert run("lineage", "files").stdout == "files\n"
    assert "--install-completion" not in run("polish", "--help").stdout
    listed = run("--help")
    assert listed.exit_code == 0
    assert "Clean a table." in listed.stdout
    assert "Look into metadata." in listed.stdout


def test_nothing_is_imported_for_other_commands(install: Install) -> None:
    install("good", {"polish": "single"}, GOOD)
    install("broken", {"compact": "app"}, "raise RuntimeError('no')")

    run("formats")
    assert not {"good", "broken"} & sys.modules.keys()
    run("polish", "here")
    assert "good" in sys.modules
    assert "broken" not in sys.modules


BROKEN = {
    "raises at import": ("raise RuntimeError('no\\nlicence')", "RuntimeError: no licence"),
    "ends the program": ("import sys; sys.exit(7)", "exit 7"),
    "lacks the attribute": ("", "no attribute 'app'"),
    "is no application": ("app = print", "is not a typer.Typer application"),
    "is empty": ("import typer; app = typer.Typer()", "has no command"),
    "lacks a dependency": ("import not_installed_anywhere", "not_installed_anywhere"),
}


@pytest.mark.parametrize(("source", "reason"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_one_is_named_and_breaks_no_other(
    install: Install, source: str, reason: str
) -> None:
    install("good", {"polish": "single"}, GOOD)
    install("broken-plugin", {"defragment": "app"}, source)

    for arguments in ([], ["some", "--argument", "-x"], ["--help"]):
        used = run("defragment", *arguments)
        assert used.exit_code == 1
        assert used.stdout == ""
        said = "error: The command 'defragment' of distribution broken-plugin cannot be loaded: "
        assert used.stderr.startswith(said)
        assert reason in used.stderr
        assert used.stderr.count("\n") == 1

    assert run("polish", "here").exit_code == 0
    listed = run("--help")
    assert listed.exit_code == 0
    assert "defragment" in listed.stdout
    assert "Clean a table." in listed.stdout


def test_two_claims_to_one_name_are_both_named(install: Install) -> None:
    install("first", {"polish": "single"}, GOOD)
    install("second", {"polish": "single"}, GOOD)

    used = run("polish", "here")

    assert used.exit_code == 1
    assert "first, second" in used.stderr
    assert not {"first", "second"} & sys.modules.keys()


def test_an_own_command_is_not_replaced(install: Install) -> None:
    install("rival", {"formats": "single"}, GOOD)

    assert "polished" not in run("formats", "--json").stdout
    listed = run("--help")
    assert listed.exit_code == 0
    assert "the command 'formats' of rival is not available" in listed.stderr
    assert "rival" not in sys.modules


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        ("polish x --fail", 1, "error: Nothing can be polished. Wait.\n"),
        ("polish", 2, None),
        ("polish x --no-such-option", 2, None),
        ("lineage unknown", 3, "error: The commit may have happened. Look at the timeline.\n"),
        ("lineage incomplete", 1, "error: It was taken back. Write again.\n"),
        ("lineage invalid", 4, ""),
        ("lineage defect", 1, "error: unexpected KeyError: 'some\\nkey'\n"),
        ("lineage pipe", 1, ""),
        ("lineage warn", 0, "warning: this option is old\n"),
        ("no-such-command", 2, None),
    ],
)
def test_exit_codes_and_messages(
    install: Install, command: str, code: int, message: str | None
) -> None:
    install("good", {"polish": "single", "lineage": "group"}, GOOD)
    used = run(*command.split())
    assert used.exit_code == code
    assert used.stdout == ""
    if message is None:  # typer's own words
        assert used.stderr
    else:
        assert used.stderr == message


@pytest.mark.parametrize(
    ("command", "code", "kind"),
    [
        ("lineage unknown --json", 3, "CommitStateUnknownError"),
        ("lineage defect --json", 1, "KeyError"),
        ("timeline no-such-table --json", 1, "NotATableError"),
        ("timeline here --json --no-such-option", 2, "NoSuchOption"),
        ("timeline --json", 2, "MissingParameter"),
        ("no-such-command --json", 2, "UsageError"),
        ("--no-such-option timeline --json", 2, "NoSuchOption"),
    ],
)
def test_errors_are_json_on_demand(install: Install, command: str, code: int, kind: str) -> None:
    install("good", {"lineage": "group"}, GOOD)
    used = run(*command.split())
    assert used.exit_code == code
    told = json.loads(used.stdout)
    assert told.keys() == {"error"}
    assert (told["error"]["type"], told["error"]["exit_code"]) == (kind, code)
    assert told["error"]["message"]
    assert told["error"]["hint"].endswith(".")
    facts = {"base_path", "reason"} if kind == "NotATableError" else set()
    assert told["error"]["facts"].keys() == facts
    assert used.stderr


def test_a_traceback_is_there_on_demand(install: Install) -> None:
    install("good", {"lineage": "group"}, GOOD)

    used = run("--traceback", "lineage", "defect")

    assert used.exit_code == 1
    assert "in defect" in used.stderr
    assert used.stderr.endswith("error: unexpected KeyError: 'some\\nkey'\n")


def test_the_errors_carry_their_facts() -> None:
    load = CommandLoadError("polish", "some-dist", "no reason")
    assert (load.name, load.distribution, load.reason) == ("polish", "some-dist", "no reason")
    conflict = CommandConflictError("polish", ["a", "b"])
    assert (conflict.name, conflict.distributions) == ("polish", ("a", "b"))


PLAIN = TableConfig(name="t", record_key_fields=("id",), partition_fields=("city",))
BY_DAY = {
    "hoodie.keygen.timebased.timestamp.type": "UNIX_TIMESTAMP",
    "hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd",
}
SERVICES = {Capability.CLUSTERING: "cluster", Capability.SAVEPOINT: "savepoint"}
SERVICES |= {Capability.RESTORE: "restore", Capability.CONVERSION: "convert"}
SETTINGS = {
    Capability.COPY_ON_WRITE: PLAIN,
    Capability.MERGE_ON_READ: replace(PLAIN, table_type=TableType.MERGE_ON_READ),
    Capability.DELETION_VECTORS: replace(
        PLAIN,
        table_type=TableType.MERGE_ON_READ,
        merge_on_read_mode=MergeOnReadMode.SPLIT,
    ),
    Capability.VIRTUAL_KEYS: replace(PLAIN, populate_meta_fields=False),
    Capability.DROPPED_PARTITION_COLUMNS: replace(PLAIN, drop_partition_columns=True),
    Capability.TRANSFORMED_PARTITIONS: replace(
        PLAIN, keygen_type=KeyGeneratorType.TIMESTAMP, time_based=time_based(BY_DAY)
    ),
}


def native() -> dict[str, Any]:
    (found,) = (one for one in run_json("formats")["formats"] if one["name"] == "native")
    return dict(found)


def test_every_ability_of_the_format_is_told_once() -> None:
    found = native()
    assert (found["distribution"], found["error"]) == ("hudi-core", None)
    built = {"copy_on_write", "replace", "add_column", "virtual_keys"}
    assert built | {"clustering", "restore", "savepoint"} <= set(found["capabilities"])
    assert "reorder_columns" in found["not_built"]
    assert not set(found["capabilities"]) & set(found["not_built"])


def test_options_of_the_formats_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told = [one for document in run_json("formats")["formats"] for one in document["options"]]
    options = {option["name"]: option for option in told}
    kind = options["hoodie.table.format.iceberg.catalog.type"]
    assert kind["choices"] == ["glue", "hive", "rest", "sql"]
    assert "hoodie.table.format.iceberg.catalog.*" in options
    assert options["hoodie.table.format.delta.deleted-file-retention-days"]["default"] == "36500"
    assert native()["options"] == []
    monkeypatch.setenv("COLUMNS", "1000")
    shown = run("formats").stdout
    assert all(name in shown for name in (*options, "native", "copy on write"))


@pytest.mark.parametrize("capability", SERVICES)
def test_services_are_told_when_there_is_one(capability: Capability) -> None:
    assert (capability in NOT_BUILT) == (not hasattr(hudi.Table, SERVICES[capability]))


@pytest.mark.parametrize("capability", SETTINGS)
def test_settings_are_told_when_such_a_table_can_be_written(capability: Capability) -> None:
    config = SETTINGS[capability]
    assert capability in table_needs(config)
    refused = pytest.raises(UnsupportedTableError) if capability in NOT_BUILT else nullcontext()
    with refused:
        require_writable_table(config, "/t")


def test_columns_are_reordered_when_alter_can() -> None:
    can = "reorder" in inspect.signature(hudi.Table.alter).parameters
    assert (Capability.REORDER_COLUMNS in NOT_BUILT) == (not can)


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """Where a table is to be, and a file with its columns."""
    schema = tmp_path / "columns.parquet"
    pq.write_table(pa.table({"id": pa.array([], pa.string())}), schema)
    return {"PATH": str(tmp_path / "t"), "SCHEMA": str(schema)}


@pytest.mark.parametrize(
    "arguments",
    [
        "create PATH --record-key id --schema-from SCHEMA --format paimon",
        "create PATH --schema-from SCHEMA -o hoodie.table.format=paimon",
        "create PATH --schema-from SCHEMA -o hudi.table.format.plugin=Paimon",
        "convert PATH --to paimon",
        "adopt PATH --key id --format paimon",
        "adopt PATH --key id --from paimon",
        "show PATH -o hoodie.table.format=paimon",
    ],
)
@pytest.mark.parametrize("flags", [[], ["--json"]], ids=["text", "json"])
def test_formats_that_there_are_not(
    places: dict[str, str], arguments: str, flags: list[str]
) -> None:
    used = run("table", *(places.get(word, word) for word in arguments.split()), *flags)
    assert used.exit_code == 2
    assert used.stderr.startswith("error: No installed plugin provides the table format 'paimon'")
    assert used.stderr.count("\n") == 1
    assert not Path(places["PATH"]).exists()
    if flags:
        told = json.loads(used.stdout)["error"]
        assert (told["type"], told["exit_code"]) == ("UnknownTableFormatError", 2)
        assert "hudi-paimon-format" in told["hint"]
    else:
        assert used.stdout == ""


def test_a_format_that_is_gone(places: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    path, schema = places.values()
    named = ("--record-key", "id", "--schema-from", schema, "--format", "delta")
    assert run("table", "create", path, *named).exit_code == 0
    found = installed_entry_points
    monkeypatch.setattr(
        "hudi_core.plugin.registry.installed_entry_points",
        lambda group: [one for one in found(group) if one.name != "delta"],
    )
    shown = run_json("table", "show", path, code=1)
    assert shown["error"]["type"] == "UnknownTableFormatError"
