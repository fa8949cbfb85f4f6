"""A process that forks writers, each of which may be told to die or to wait; run by the tests.

Jobs come as lines of JSON and answers go back as such. A writer is forked from a process that has
imported everything and started no thread, so it costs milliseconds, and it is a process of its own:
it can be killed as the kernel kills.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

import hudi_core as hudi
from hudi_core.base_file.writer import BaseFileWriter
from hudi_core.storage.disk import Disk
from tests.tables import SCHEMA

PATIENCE_S = 60.0


class Steps:
    """Counts the steps that change the disk, and kills this process at one of them.

    A step is killed ``before`` it is done, ``after`` it, or ``torn``: half of its bytes written.
    """

    def __init__(self, at: int | None, how: str) -> None:
        self.done = 0
        self._at = at
        self._how = how
        for name in ("make_folder", "write_new", "link", "replace", "remove", "remove_folder"):
            self._watch(Disk, name, torn_write if name == "write_new" else None)
        self._watch(BaseFileWriter, "write", None)
        self._watch(BaseFileWriter, "close", torn_data_file)

    def _watch(self, owner: type, name: str, torn: Callable[..., None] | None) -> None:
        original = getattr(owner, name)

        def step(*arguments: Any, **named: Any) -> Any:
            self.done += 1
            mine = self.done == self._at
            if mine and self._how == "torn" and torn is not None:
                torn(*arguments, **named)
            if mine and self._how != "after":
                die()
            try:
                return original(*arguments, **named)
            finally:
                if mine:
                    die()

        setattr(owner, name, step)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def torn_write(_: Disk, path: str, data: bytes, **__: bool) -> None:
    # a step that fails for want of a folder is killed as well
    with contextlib.suppress(FileNotFoundError), open(path, "xb") as file:
        file.write(data[: len(data) // 2])


def torn_data_file(writer: BaseFileWriter) -> None:
    with open(writer.path, "wb") as file:
        file.write(b"PAR1 and no more")


def job_rows(job: dict[str, Any]) -> pa.Table | pa.RecordBatchReader:
    table = pa.Table.from_pylist(job["rows"], SCHEMA)
    if "pause" not in job:
        return table

    def waiting() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        with open(job["pause"] + ".waits", "xb"):
            pass
        wait_for(job["pause"] + ".go")

    return pa.RecordBatchReader.from_batches(SCHEMA, waiting())


def wait_for(path: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            raise TimeoutError(path)
        time.sleep(0.005)


def write(job: dict[str, Any]) -> dict[str, Any]:
    steps = Steps(job.get("at"), job.get("how", "before"))
    table = hudi.Table.open(job["path"], job.get("options"))
    results = []
    try:
        for number in range(job.get("times", 1)):
            data = job_rows(job)
            if number and isinstance(data, pa.Table):
                data = data.set_column(2, SCHEMA.field(2), pa.array([number] * len(data)))
            result = getattr(table, job["operation"])(data)
            results.append([result.instant.requested_time, result.instant.completion_time])
    except hudi.HudiError as error:
        return {"error": type(error).__name__, "message": str(error), "instants": results}
    return {"instants": results, "steps": steps.done}


def start(job: dict[str, Any]) -> tuple[int, int]:
    """Fork a writer; return its process id and where its answer will be read."""
    reading, writing = os.pipe()
    process = os.fork()
    if process:
        os.close(writing)
        return process, reading
    status = 1
    try:
        os.write(writing, json.dumps(write(job)).encode())
        status = 0
    finally:
        # never back into the nursery's own loop
        if status:
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(status)


def answer(process: int, reading: int) -> dict[str, Any]:
    with open(reading, "rb") as pipe:
        text = pipe.read()
    _, status = os.waitpid(process, 0)
    killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return {"killed": killed, **(json.loads(text) if text else {})}


def main() -> None:
    started: dict[int, int] = {}
    for line in sys.stdin:
        job = json.loads(line)
        if "wait" in job:
            reply = answer(job["wait"], started.pop(job["wait"]))
        else:
            process, reading = start(job)
            if job.get("background"):
                started[process] = reading
                reply = {"process": process}
            else:
                if "kill_after" in job:
                    time.sleep(job["kill_after"])
                    os.kill(process, signal.SIGKILL)
                reply = answer(process, reading)
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
