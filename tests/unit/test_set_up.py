"""The set-up finds a Java that is new enough, or says the command that installs one."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "prepare.py"


@pytest.fixture
def prepare() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prepare", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fake_java(home: Path, release: str) -> Path:
    """Write a program that answers as Java does; return its home."""
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"#!/bin/sh\n"
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.specification.version = {release}' >&2\n"
    )
    executable.chmod(0o755)
    return home


@pytest.mark.parametrize(("told", "release"), [("17", 17), ("25", 25), ("1.8", 8)])
def test_a_java_says_its_release(
    prepare: ModuleType, tmp_path: Path, told: str, release: int
) -> None:
    home = fake_java(tmp_path / "java", told)
    assert prepare.ask_java(home / "bin" / "java") == (home, release)


def test_what_is_no_java_is_passed_over(prepare: ModuleType, tmp_path: Path) -> None:
    assert prepare.ask_java(tmp_path / "missing") is None
    home = fake_java(tmp_path / "broken", "17")
    (home / "bin" / "java").write_text("#!/bin/sh\nexit 1\n")
    assert prepare.ask_java(home / "bin" / "java") is None


def test_java_home_comes_before_the_path(
    prepare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "wanted", "21")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "other", "17") / "bin"), prepend=":")
    assert prepare.find_java() == (tmp_path / "wanted", 21)


def test_an_old_java_home_is_passed_over(
    prepare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "other", "17") / "bin"), prepend=":")
    assert prepare.find_java() == (tmp_path / "other", 17)


def test_without_rights_the_exact_command_is_told(
    prepare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offers_21_only = tmp_path / "apt-cache"
    offers_21_only.write_text(
        '#!/bin/sh\n[ "$2" = openjdk-21-jre-headless ] && echo "Package: $2"\n'
    )
    offers_21_only.chmod(0o755)
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexit 99\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(prepare.os, "geteuid", lambda: 1000)

    with pytest.raises(SystemExit) as stopped:
        prepare.install_java()

    assert stopped.value.code == (
        "set-up: Spark needs Java 17 or newer, and this machine has none.\n"
        "        Install one: sudo apt-get update -qq && "
        "sudo apt-get install -y --no-install-recommends openjdk-21-jre-headless"
    )


@pytest.mark.parametrize("resolves", [True, False])
def test_spark_needs_no_name_server(
    prepare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resolves: bool
) -> None:
    def getaddrinfo(*_: object) -> list[object]:
        if not resolves:
            raise socket.gaierror
        return []

    monkeypatch.setattr(prepare.socket, "getaddrinfo", getaddrinfo)
    environment = prepare.spark_environment(prepare.Java(tmp_path / "a java", 17))
    assert ("PYSPARK_UDS_MODE" in environment) is not resolves

    script = prepare.shell_lines(environment) + "echo $JAVA_HOME"
    told = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout == f"{tmp_path}/a java\n"


def test_only_the_lines_of_one_package_are_taken(prepare: ModuleType) -> None:
    lock = "a==1 \\\n    --hash=sha256:1\nab==2 \\\n    --hash=sha256:2\n    # via a\nb==3\n"
    assert prepare.locked("ab", lock) == "ab==2 \\\n    --hash=sha256:2\n    # via a\n"
    with pytest.raises(SystemExit, match="does not name c"):
        prepare.locked("c", lock)


def test_a_changed_lock_is_noticed(
    prepare: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "java", "17")
    for name, path in {"LOCK": "lock", "VENV": "venv", "PREPARED": "prepared"}.items():
        monkeypatch.setattr(prepare, name, tmp_path / path)
    python = prepare.python_in_venv()
    python.parent.mkdir(parents=True)
    python.touch()
    (tmp_path / "lock").write_text("a==1\n")
    assert not prepare.is_prepared(prepare.fingerprint())

    (tmp_path / "prepared").write_text(prepare.fingerprint())
    assert not prepare.is_prepared(prepare.fingerprint()), "cut short"
    (tmp_path / "prepared").write_text(f"{prepare.fingerprint()}\n{home}\n")
    assert prepare.is_prepared(prepare.fingerprint())

    (tmp_path / "lock").write_text("a==2\n")
    assert not prepare.is_prepared(prepare.fingerprint())
    (tmp_path / "lock").write_text("a==1\n")
    (home / "bin" / "java").unlink()
    assert not prepare.is_prepared(prepare.fingerprint())
