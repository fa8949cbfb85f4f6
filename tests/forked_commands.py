"""Commands of Python, forked from one process that has imported what takes each a second.

The process that forks starts no thread. It runs this file, and gets jobs as lines of JSON.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

PRELOADED: Final = (
    *("hudi_core.table", "hudi_core.cli", "hudi_core.spi.testing", "hudi_core.txn.locks"),
    *("pyarrow.parquet", "pyarrow.dataset", "pytest", "hypothesis.stateful"),
)


class ForkedCommands:
    """Runs ``python -c`` without its start."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(
        self, code: str, *words: str, cwd: Path, environment: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """Run code with arguments in a folder and an environment; wait for its end."""
        with tempfile.TemporaryDirectory() as folder:
            printed = [Path(folder, name) for name in ("stdout", "stderr")]
            process = self.start(code, *words, cwd=cwd, environment=environment, printed=printed)
            return subprocess.CompletedProcess(
                [sys.executable, "-c", code, *words],
                self.wait(process),
                *(one.read_text(encoding="utf-8") for one in printed),
            )

    def start(
        self,
        code: str,
        *words: str,
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        printed: Sequence[Path] = (),
    ) -> int:
        """Start code, and return the number of its process.

        ``printed``: files for what it prints, and for what it prints as errors.
        """
        given = {**(os.environ if environment is None else environment)}
        files = [str(one) for one in printed]
        return self._ask(
            code=code, words=words, cwd=str(cwd or Path.cwd()), environment=given, printed=files
        )

    def wait(self, process: int) -> int:
        """Wait for the end of a process, and return its status."""
        return self._ask(wait=process)

    def _ask(self, **job: Any) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process that forks has ended"
        return int(answer)


@contextmanager
def forked_commands() -> Iterator[ForkedCommands]:
    """Start the process that forks, which lives until its input ends."""
    command = (sys.executable, "-m", "tests.forked_commands")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield ForkedCommands(process)


def serve() -> None:
    """Fork a process for each job, and print its number; or wait for one, and print its status."""
    for name in PRELOADED:
        importlib.import_module(name)
    gc.freeze()
    for line in sys.stdin:
        job = json.loads(line)
        if "wait" in job:
            answer = os.waitstatus_to_exitcode(os.waitpid(job["wait"], 0)[1])
        elif not (answer := os.fork()):
            become(**job)
        print(answer, flush=True)


def become(
    code: str, words: list[str], cwd: str, environment: dict[str, str], printed: list[str]
) -> NoReturn:
    """Be the process that Python would have started."""
    status: object = 1
    try:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)  # answers go out by what was the first
        for number, name in enumerate(printed, 1):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:0] = ["", *environment["PYTHONPATH"].split(os.pathsep)]
        sys.argv = ["-c", *words]
        importlib.invalidate_caches()
        exec(code, {"__name__": "__main__"})
        status = 0
    except SystemExit as end:
        status = end.code or 0
        if not isinstance(status, int):
            print(status, file=sys.stderr)
    except BaseException:  # noqa: BLE001 - Python prints whatever ends a program
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # never back into the loop of the process that was forked
        os._exit(status if isinstance(status, int) else 1)


if __name__ == "__main__":
    serve()
