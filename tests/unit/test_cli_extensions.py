"""Commands of other distributions: found by entry points, and unable to break anything else."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hudi_core.errors import CommandConflictError, CommandLoadError
from tests.cli_runs import run

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
    install("broken-plugin", {"compact": "app"}, source)

    for arguments in ([], ["some", "--argument", "-x"], ["--help"]):
        used = run("compact", *arguments)
        assert used.exit_code == 1
        assert used.stdout == ""
        said = "error: The command 'compact' of distribution broken-plugin cannot be loaded: "
        assert used.stderr.startswith(said)
        assert reason in used.stderr
        assert used.stderr.count("\n") == 1

    assert run("polish", "here").exit_code == 0
    listed = run("--help")
    assert listed.exit_code == 0
    assert "compact" in listed.stdout
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
