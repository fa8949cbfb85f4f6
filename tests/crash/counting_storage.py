"""The steps that change a store, numbered; and processes that die or fail at one of them.

What is counted lies below everything the project writes: the calls of
:class:`~hudi_core.storage.disk.Disk`, and the writing of data files, which pyarrow does. More can
be added with :meth:`CountedSteps.watch`: the calls of another store, or of a library.

A step has a name that tells what is done to which kind of file, and neither when nor where: so a
count of names can be kept in a file (:func:`pinned`), and a new call, or one call more, is seen.
"""

from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import os
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, Self

from hudi_core.base_file.writer import BaseFileWriter
from hudi_core.errors import StorageError
from hudi_core.storage.disk import Disk
from hudi_core.storage.posix_reader import TEMPORARY_PREFIX

DEATH: Final = 7
"""Exit status of a process that was killed at a step."""
KILLS: Final = ("before", "after", "torn")
"""The process ends before the step, after it, or when half of its bytes are written."""
ERRORS: Final = ("err_before", "err_after", "err_torn")
"""The step raises: nothing was done; all was done, only the answer is lost; half was done."""
DISK: Final = ("make_folder", "write_new", "link", "replace", "remove", "remove_folder")
_PRELOADED: Final = (
    *("hudi_core.table", "pyarrow.parquet"),
    *("tests.crash.counting_storage", "tests.crash.warm_start"),
)
"""What is imported before the first fork; what is not there is passed over."""


class Fault(NamedTuple):
    """What goes wrong.

    ``at``: number of the step, from 1 on. ``how``: one of :data:`KILLS` or :data:`ERRORS`. Where a
    step has no half, ``torn`` is ``before``.
    """

    at: int
    how: str


def broken() -> Exception:
    """Return what a step raises that fails."""
    return OSError(errno.EIO, "The disk is broken")


def unwritable() -> Exception:
    """Return what the writing of a data file raises that fails."""
    return StorageError("The data file cannot be written", "Check free space, then write again.")


class CountedSteps:
    """Counts the steps of this process while it is entered, and lets one of them go wrong.

    ``fault``: what goes wrong; ``None`` to count alone. ``names``: what was done, in order; see the
    module. ``tearable``: numbers of the steps of which half can be done.
    """

    def __init__(self, fault: Fault | None = None) -> None:
        self.names: list[str] = []
        self.tearable: list[int] = []
        self._fault = fault
        self._lock = threading.Lock()
        self._undo = contextlib.ExitStack()

    def __enter__(self) -> Self:
        for method in DISK:
            self.watch(Disk, method, torn=_torn_write if method == "write_new" else None)
        self.watch(BaseFileWriter, "write", name=_data_file, error=unwritable)
        self.watch(BaseFileWriter, "close", name=_data_file, torn=_torn_data_file, error=unwritable)
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def watch(
        self,
        owner: Any,
        method: str,
        *,
        name: Callable[..., str] | None = None,
        torn: Callable[..., None] | None = None,
        error: Callable[[], Exception] = broken,
    ) -> None:
        """Count the calls of a method from now on, until this is left.

        ``owner``: the class, module or value that has the method. ``name``: tells from the
        arguments what kind of file is changed; by default the last argument that is a path says so.
        ``torn``: does half of the step. ``error``: makes what the step raises when it fails.
        """
        original = getattr(owner, method)
        kind = name or _kind_of_path

        def step(*arguments: Any, **named: Any) -> Any:
            self.about_to(method, arguments)
            how = self._next(f"{method} {kind(*arguments, **named)}", torn is not None)
            if how is None:
                return original(*arguments, **named)
            if how.endswith("torn") and torn is not None:
                torn(*arguments, **named)
            elif how.endswith("after"):
                # a step that fails by itself is the end, too
                with contextlib.ExitStack() as stack:
                    if not how.startswith("err"):
                        stack.callback(die)
                    original(*arguments, **named)
            if how.startswith("err"):
                raise error()
            die()

        setattr(owner, method, step)
        self._undo.callback(setattr, owner, method, original)

    def about_to(self, method: str, arguments: Sequence[Any]) -> None:
        """Hear of a step that comes; for those who want to look at the disk before it."""

    def _next(self, name: str, has_half: bool) -> str | None:
        with self._lock:
            self.names.append(name)
            number = len(self.names)
            if has_half:
                self.tearable.append(number)
            if self._fault is None or number != self._fault.at:
                return None
            return self._fault.how


def die() -> NoReturn:
    """End the process at once: nothing is closed, flushed or cleaned up."""
    os._exit(DEATH)


def _torn_write(_: Disk, path: str, data: bytes, **__: bool) -> None:
    # a step that fails for want of a folder has no half
    with contextlib.suppress(FileNotFoundError), open(path, "xb") as file:
        file.write(data[: len(data) // 2])


def _data_file(*_: Any, **__: Any) -> str:
    return "data file"


def _torn_data_file(writer: BaseFileWriter) -> None:
    os.makedirs(os.path.dirname(writer.path), exist_ok=True)  # it may be below a new prefix
    with open(writer.path, "wb") as file:
        file.write(b"PAR1 and no more")


def _kind_of_path(*arguments: Any, **_: Any) -> str:
    return kind_of([one for one in arguments if isinstance(one, str)][-1])


_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22,}|[0-9a-f]{32,}")
_NUMBER: Final = re.compile(r"\d+")
_META: Final = "/.hoodie/"
_LOG: Final = "/_delta_log/"


def kind_of(path: str) -> str:
    """Return what kind of file a path names: its folder in ``.hoodie`` or the Delta log, and its
    name, with ``N`` for numbers and times, and ``I`` for ids; ``data`` for all that lies elsewhere.
    """
    if _LOG in path:
        below = f"{_LOG}{path.partition(_LOG)[2]}"
    elif _META in f"{path}/":
        below = path.partition(_META)[2]
    else:
        return "data"
    folder, _, name = below.strip("/").rpartition("/")
    if name.startswith(TEMPORARY_PREFIX):
        name = "temporary"
    if folder.startswith(".temp"):
        # markers lie in folders of the table's own partitions
        folder, name = ".temp", "marker"
    return _NUMBER.sub("N", _ID.sub("I", f"{folder}/{name}".strip("/"))) or "the folder itself"


class Outcome(NamedTuple):
    """How a process ended.

    ``status``: its exit status; :data:`DEATH` when it was killed at a step. ``answer``: what its
    function returned; ``None`` when it was killed.
    """

    status: int | None
    answer: Any

    @property
    def is_killed(self) -> bool:
        """Whether the process was killed at a step."""
        return self.status == DEATH


def in_fork(function: Callable[..., Any], *arguments: Any) -> Outcome:
    """Call a function of a module in a process of its own, and wait for it.

    The process is forked from one that has imported the project and has no threads: it costs some
    20 ms.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    reading, writing = context.Pipe(duplex=False)
    process = context.Process(target=_answering, args=(writing, function, arguments))
    process.start()
    writing.close()
    with reading, contextlib.suppress(EOFError):
        answer = reading.recv()
        process.join()
        return Outcome(process.exitcode, answer)
    process.join()
    return Outcome(process.exitcode, None)


def _answering(writing: Connection, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
    answer = function(*arguments)
    writing.send(answer)
    writing.close()


def faults(steps: CountedSteps | tuple[int, Sequence[int]], hows: Sequence[str]) -> Iterator[Fault]:
    """Yield every fault of a run: each step, in each way it can go wrong.

    ``steps``: a run that was counted, or the number of its steps and those that have a half.
    """
    count, tearable = steps if isinstance(steps, tuple) else (len(steps.names), steps.tearable)
    for how in hows:
        numbers = tearable if how.endswith("torn") else range(1, count + 1)
        yield from (Fault(number, how) for number in numbers)


def pinned(path: Path, counted: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Compare counted runs with what a file says of them.

    ``path``: the file: by scene how often each step is made. With ``HUDI_PIN=1`` it is written.
    ``counted``: names of the steps by scene. Returns: By scene what differs, in words; empty when
    nothing does.
    """
    found = {scene: dict(sorted(Counter(names).items())) for scene, names in counted.items()}
    if os.environ.get("HUDI_PIN"):
        kept = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(kept | found, indent=1, sort_keys=True) + "\n")
    wanted = json.loads(path.read_text())
    differences = {}
    for scene, steps in found.items():
        known = wanted.get(scene, {})
        differences[scene] = [
            f"{name}: {known.get(name, 0)} expected, {steps.get(name, 0)} made"
            for name in sorted({*known, *steps})
            if known.get(name, 0) != steps.get(name, 0)
        ]
    return {scene: said for scene, said in differences.items() if said}
