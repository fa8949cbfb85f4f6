"""Prepare a fresh machine: `.venv` with the locked packages and the project, and Java for Spark.

Run by `make setup`, and by every target that needs it. With nothing changed it returns at once.
Uses the standard library only, and syntax that an older Python can read far enough to say what is
missing.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
# readers for the tests that need other releases than the rest: each has a lock and a folder
READERS = sorted((ROOT / "tests" / "readers").glob("*.lock"))
PREPARED = VENV / "prepared"  # the key of the last complete set-up, and the Java it found
# beside the core
PROJECTS = ("delta_format", "iceberg_format", "plugins/conformance", "plugins/sql_format")
CLASSES = VENV / "spark.jsa"  # Spark's classes as Java keeps them; the tests start it many times
ENVIRONMENT = VENV / "environment"  # what the Makefile and the tests hand to Spark, as shell lines

OLDEST_PYTHON = (3, 11)
OLDEST_JAVA = 17  # Spark 4 runs on nothing older
JAVA_FOLDERS = ("usr/lib/jvm/*", "Library/Java/JavaVirtualMachines/*/Contents/Home")


class Java(NamedTuple):
    """A Java runtime: where it lives, and its feature release."""

    home: Path
    release: int


class PackageManager(NamedTuple):
    """How one family of distributions finds and installs a headless Java runtime."""

    refresh: tuple[str, ...]
    query: tuple[str, ...]
    install: tuple[str, ...]
    packages: tuple[str, ...]


MANAGERS = {
    "apt-get": PackageManager(
        refresh=("apt-get", "update", "-qq"),
        query=("apt-cache", "show"),
        install=("apt-get", "install", "-y", "--no-install-recommends"),
        packages=tuple(f"openjdk-{release}-jre-headless" for release in (17, 21, 25)),
    ),
    "dnf": PackageManager(
        refresh=("dnf", "-q", "makecache"),
        query=("dnf", "-q", "info"),
        install=("dnf", "install", "-y"),
        packages=tuple(f"java-{release}-openjdk-headless" for release in (17, 21, 25)),
    ),
    "apk": PackageManager(
        refresh=("apk", "update", "-q"),
        query=("apk", "search", "-e"),
        install=("apk", "add"),
        packages=tuple(f"openjdk{release}-jre-headless" for release in (17, 21, 25)),
    ),
}


def main() -> None:
    """Do what is missing, in the order in which it is cheapest to fail."""
    use_a_python_that_is_new_enough()
    key = fingerprint()
    if is_prepared(key):
        return
    PREPARED.unlink(missing_ok=True)
    java = find_java() or install_java()
    say(f"Java {java.release} in {java.home}")
    make_venv()
    install_packages()
    environment = spark_environment(java)
    ENVIRONMENT.write_text(shell_lines(environment))
    archive_classes(environment)
    PREPARED.write_text(f"{key}\n{java.home}\n")
    say("ready")


# --- has anything changed? ------------------------------------------------------------------------


def fingerprint() -> str:
    """Return a digest of everything the environment is made from."""
    digest = hashlib.sha256()
    projects = [ROOT / "pyproject.toml", *(ROOT / name / "pyproject.toml" for name in PROJECTS)]
    for path in (LOCK, *READERS, *projects, Path(__file__)):
        digest.update(path.read_bytes())
    # an editable install knows the packages that were there when it was made
    packages = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
    for fact in (str(ROOT), sys.version, os.environ.get("JAVA_HOME", ""), *packages):
        digest.update(fact.encode() + b"\0")
    return digest.hexdigest()


def is_prepared(key: str) -> bool:
    """Say whether the last set-up was made from the same things and its Java is still there."""
    try:
        last_key, java_home = PREPARED.read_text().splitlines()
    except (FileNotFoundError, ValueError):  # never written, or not to its end
        return False
    java = Path(java_home, "bin", "java")
    return last_key == key and java.exists() and python_in_venv().exists()


# --- Python ---------------------------------------------------------------------------------------


def use_a_python_that_is_new_enough() -> None:
    """Continue in a newer Python of this machine when this one is too old."""
    if sys.version_info >= OLDEST_PYTHON:
        return
    for minor in range(14, OLDEST_PYTHON[1] - 1, -1):
        newer = shutil.which(f"python3.{minor}")
        if newer:
            os.execv(newer, [newer, *sys.argv])  # noqa: S606 - the same script, no shell wanted
    raise trouble(
        f"Python {'.'.join(map(str, OLDEST_PYTHON))} or newer is needed; "
        f"{sys.executable} is {sys.version.split()[0]}.",
        "Install one, or name it: make PYTHON=/path/to/python3 setup",
    )


def python_in_venv() -> Path:
    """Return the interpreter that runs everything else."""
    return VENV / "bin" / "python"


def make_venv() -> None:
    """Create `.venv`, unless one of the right kind is there."""
    if python_in_venv().exists():
        probe = f"import sys, pip; sys.exit(sys.version_info < {OLDEST_PYTHON})"
        if subprocess.run([python_in_venv(), "-c", probe], check=False).returncode == 0:
            return
    say(f"creating {VENV.name} with Python {sys.version.split()[0]}")
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", VENV], check=False)
    if made.returncode != 0:
        raise trouble(
            "The virtual environment could not be created.",
            "On Debian: apt-get install python3-venv",
        )


def install_packages() -> None:
    """Install what the lock names, every file checked against its hash, then the project itself."""
    lock = LOCK.read_text()
    count = len(re.findall("^[a-z]", lock, re.MULTILINE))
    say(f"installing {count} locked packages; the first time takes a minute or two")
    tools = VENV / "tools.lock"
    tools.write_text(locked("setuptools", lock) + locked("uv", lock))
    pip("install", "--require-hashes", "--no-deps", "-r", tools)
    # what comes as source is built by the locked setuptools, not by one fetched unchecked; the
    # wheels that this makes are not compressed, as they are unpacked at once (Spark's is large)
    checked = ("--require-hashes", "--no-deps", "--no-build-isolation")
    uncompressed = "--config-setting=--build-option=--compression=stored"
    uv("install", *checked, uncompressed, "-r", LOCK)
    for reader in READERS:
        folder = VENV / "readers" / reader.stem
        shutil.rmtree(folder, ignore_errors=True)
        uv("install", "--require-hashes", "--no-deps", "--target", folder, "-r", reader)
    say("installing the project, editable")
    projects = (option for name in (".", *PROJECTS) for option in ("-e", ROOT / name))
    uv("install", "--no-deps", "--no-build-isolation", *projects)
    show_data_sources(next(VENV.glob("lib*/python*/site-packages")))


def show_data_sources(site_packages: Path) -> None:
    """Put links to Spark's data sources where PySpark looks for them.

    It looks through the folders of Python's path, and what is installed editable is in none.
    """
    for source in sorted(ROOT.glob("pyspark_*/__init__.py")):
        link = site_packages / source.parent.name
        if link.is_symlink():
            link.unlink()
        link.symlink_to(source.parent)


def locked(name: str, lock: str) -> str:
    """Return the lines of one package of the lock file."""
    found = re.search(rf"^{name}==.*(?:\n .*)*", lock, re.MULTILINE)
    if found is None:
        raise trouble(f"{LOCK.name} does not name {name}.", "Make it again: make lock")
    return found.group() + "\n"


def pip(*arguments: str | Path) -> None:
    """Run the virtual environment's pip."""
    if not runs("pip", "-q", "--no-color", *arguments):
        raise trouble("pip failed; its own message is above.", "Run the same command again.")


def uv(*arguments: str | Path) -> None:
    """Do the same by uv, which fetches and unpacks several packages at once; else by pip."""
    given = ("--quiet", "--color=never", "--python", python_in_venv())
    if runs("uv", "pip", *arguments, *given, more=uv_settings()):
        return
    say("uv failed; its own message is above. Trying the same by pip")
    command, *rest = arguments
    pip(command, "--use-pep517", *rest)


def runs(module: str, *arguments: str | Path, more: Mapping[str, str] | None = None) -> bool:
    """Run a module of the virtual environment, and say whether it succeeded."""
    settings = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    done = subprocess.run(
        [python_in_venv(), "-m", module, *arguments],
        env={**(more or {}), **os.environ, **settings},
        check=False,
    )
    return done.returncode == 0


def uv_settings() -> dict[str, str]:
    """Where pip looks for packages, as variables of uv, which does not read pip's settings."""
    listed = subprocess.run(
        [python_in_venv(), "-m", "pip", "config", "list"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    found: dict[str, list[str]] = {}
    # the environment goes before the command's section of files, and this before the global one
    for section in ("global", "install", ":env:"):
        for name, value in re.findall(rf"^{section}\.([\w-]+)=('.*')$", listed, re.MULTILINE):
            found[name] = str(ast.literal_eval(value)).split()
    # pip passes over folders that are missing
    places = [at for at in found.get("find-links", ()) if ":" in at or Path(at).exists()]
    settings = {
        "UV_DEFAULT_INDEX": " ".join(found.get("index-url", ())),
        "UV_INDEX": " ".join(found.get("extra-index-url", ())),
        "UV_FIND_LINKS": ",".join(places),
        "SSL_CERT_FILE": " ".join(found.get("cert", ())),
        "ALL_PROXY": " ".join(found.get("proxy", ())),
        # as pip has it: every file has a hash, whichever index it comes from
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }
    return {name: value for name, value in settings.items() if value}


# --- Java -----------------------------------------------------------------------------------------


def find_java() -> Java | None:
    """Return the first runtime that is new enough: JAVA_HOME, then PATH, then the usual folders."""
    for executable in java_candidates():
        java = ask_java(executable)
        if java is not None and java.release >= OLDEST_JAVA:
            return java
    return None


def java_candidates() -> Iterator[Path]:
    """Yield the executables that may be a Java, the most wanted first."""
    wanted = os.environ.get("JAVA_HOME")
    if wanted:
        yield Path(wanted) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    for folder in JAVA_FOLDERS:
        yield from sorted(Path("/").glob(f"{folder}/bin/java"))


def ask_java(executable: Path) -> Java | None:
    """Ask a Java what it is; `None` when it does not run."""
    try:
        printed = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    settings = printed.stderr + printed.stdout
    facts = dict(re.findall(r"^\s*(java\.[\w.]+) = (.+?)\s*$", settings, re.MULTILINE))
    release = facts.get("java.specification.version", "").removeprefix("1.")  # 1.8 is Java 8
    if not release.isdigit() or "java.home" not in facts:
        return None
    return Java(Path(facts["java.home"]), int(release))


def spark_environment(java: Java) -> dict[str, str]:
    """Settings that a local Spark needs on this machine."""
    environment = {
        "JAVA_HOME": str(java.home),
        # the workers run this Python, not whichever comes first on the path
        "PYSPARK_PYTHON": str(python_in_venv()),
        # nothing listens beyond this machine, and its name need not be known to any name server
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    try:
        socket.getaddrinfo("localhost", None)
    except socket.gaierror:
        # a minimal system may lack /etc/hosts: Spark and its workers then talk over files
        environment["PYSPARK_UDS_MODE"] = "true"
    return environment


_QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_USUAL_WORK = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
rows = spark.range(100).selectExpr("id", "id % 7 as k", "cast(id as string) as s")
rows.createOrReplaceTempView("t")
spark.sql("select k, max(s) from t join (select k as j from t) on k = j group by k").collect()
rows.mapInArrow(lambda batches: batches, rows.schema).count()
rows.write.parquet("{folder}/p")
spark.read.parquet("{folder}/p").where("id > 3").toPandas()
java = spark.sparkContext._gateway.proc
spark.stop()
java.stdin.close()
java.wait()
"""


def archive_classes(environment: Mapping[str, str]) -> None:
    """Keep the classes that Spark loads: Java starts it in two thirds of the time with them.

    Nothing needs them, and nothing fails without.
    """
    CLASSES.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [python_in_venv(), "-c", _USUAL_WORK.format(folder=folder)],
            env={
                **os.environ,
                **environment,
                "JDK_JAVA_OPTIONS": f"-XX:ArchiveClassesAtExit={CLASSES} {_QUICK_JAVA}",
            },
            capture_output=True,
            check=False,
        )
    if done.returncode != 0:
        CLASSES.unlink(missing_ok=True)


def shell_lines(environment: dict[str, str]) -> str:
    """Return the variables as lines for a shell to read."""
    return "".join(f"export {name}={shlex.quote(value)}\n" for name, value in environment.items())


def install_java() -> Java:
    """Install the distribution's headless runtime, or say the command that does."""
    manager = next((MANAGERS[tool] for tool in MANAGERS if shutil.which(tool)), None)
    missing = f"Spark needs Java {OLDEST_JAVA} or newer, and this machine has none."
    if manager is None:
        raise trouble(missing, "Install one, set JAVA_HOME to its folder, and run the same again.")
    may_install = os.geteuid() == 0
    if may_install:
        say(f"no Java {OLDEST_JAVA} or newer found: asking the distribution for one")
        run_quietly(manager.refresh)
    offered = [name for name in manager.packages if offers(manager, name)]
    package = (offered or manager.packages)[0]
    if may_install and run_quietly((*manager.install, package)):
        java = find_java()
        if java is not None:
            return java
    commands = (" ".join(manager.refresh), " ".join((*manager.install, package)))
    raise trouble(missing, f"Install one: sudo {' && sudo '.join(commands)}")


def offers(manager: PackageManager, package: str) -> bool:
    """Say whether the distribution has a package of that name."""
    answer = subprocess.run([*manager.query, package], capture_output=True, check=False)
    return answer.returncode == 0 and bool(answer.stdout)


def run_quietly(command: Sequence[str]) -> bool:
    """Run a command of the package manager; show what it said only when it fails."""
    done = subprocess.run(
        command,
        env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        say(f"{' '.join(command)} failed:\n{done.stdout.strip()}")
    return done.returncode == 0


# --- what the reader sees -------------------------------------------------------------------------


def say(text: str) -> None:
    """Print one line of progress."""
    print(f"set-up: {text}", flush=True)


def trouble(what: str, hint: str) -> SystemExit:
    """Make the error that ends the run: what is missing, and what to do."""
    return SystemExit(f"set-up: {what}\n        {hint}")


if __name__ == "__main__":
    main()
