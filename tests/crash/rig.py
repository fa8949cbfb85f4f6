"""One case of the crash rig: a writer meets a fault, the next one comes, and the table is checked.

Everything happens in processes of its own, forked from one that has imported all readers and
writers and has used none of them: a fork costs milliseconds, while the threads of a library that
had been used would not survive it.
"""

from __future__ import annotations

import importlib
import os
import pickle
import shutil
import tempfile
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

import delta_format.creation as delta_creation
import hudi_core as hudi
from hudi_core.errors import CommitStateUnknownError, HudiError, StorageError
from hudi_core.plugin.host import FormatHost
from tests.crash.check_table import ACKED, FAILED, OPEN, Report, Tried, check_table
from tests.crash.counting_storage import DEATH, CountedSteps, Fault
from tests.crash.late_requests import LANDS, LATE, landing, lost_sender
from tests.crash.mutants import MUTANTS
from tests.crash.scenes import ACTIONS, CANARY, OPTIONS, SCENES, Wound, create, next_write

Names = frozenset[str]
HOOKS: Final = ("complete_write", "complete_rollback", "before_rollback")
PRELOADED: Final = (
    *("native_format.plugin", "iceberg_format.plugin", "delta_format.plugin", "deltalake.fs"),
    *("pyiceberg.io.pyarrow", "pyiceberg.catalog.noop", "pyiceberg.avro.decoder_fast"),
)
"""What every process would import for itself, were it not there when it is forked."""
SECOND: Final = "other"
"""What the second writer does where the first one's recovery is interrupted too."""


class Case(NamedTuple):
    """What goes wrong, where.

    Attributes
    ----------
    format_name, scene
        The table, and what is done to it; see :mod:`tests.crash.scenes`.
    fault
        What goes wrong meanwhile; ``None`` for nothing.
    second
        What goes wrong in the write that follows; ``None`` where nothing does. A fault may also be
        one of :mod:`tests.crash.late_requests`.
    mutant
        Name of a change to the protocol that breaks it; see :mod:`tests.crash.mutants`.
    """

    format_name: str
    scene: str
    fault: Fault | None = None
    second: Fault | None = None
    mutant: str | None = None

    def __str__(self) -> str:
        faults = [f"{one.how} {one.at}" for one in (self.fault, self.second) if one is not None]
        return " ".join(filter(None, (self.format_name, self.scene, *faults, self.mutant)))


class Verdict(NamedTuple):
    """How a case ended.

    Attributes
    ----------
    case
        The case.
    violations
        Broken promises, in words.
    steps
        Names of the steps that the action made, up to the fault.
    tearable
        Numbers of those of which half can be done.
    told
        What the caller of the action was told.
    cpu_s
        Seconds of the processor.
    """

    case: Case
    violations: tuple[str, ...]
    steps: tuple[str, ...]
    tearable: tuple[int, ...]
    told: str
    cpu_s: float


class Ended(NamedTuple):
    """How a forked process ended: its exit status, its answer, and what it has printed."""

    status: int
    answer: Any
    printed: str


class _Lost(Exception):
    """A process ended that was to answer; says what it has printed."""


@dataclass(slots=True)
class Rig:
    """Runs cases in a folder, one after the other.

    Tables are always put at the same path, as formats record absolute ones.
    """

    folder: Path
    cpu_s: float = 0.0
    _templates: dict[tuple[str, str], Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in PRELOADED:
            importlib.import_module(name)

    @property
    def path(self) -> Path:
        """Where the table is."""
        return self.folder / "table"

    def count(self, case: Case) -> Verdict:
        """Do what a scene does, without a fault and without a check, to know its steps."""
        before = self.cpu_s
        acted = self._act(case._replace(fault=None), self._begin(case), SCENES[case.scene].action)
        steps, tearable = tuple(acted.steps), tuple(acted.tearable)
        return Verdict(case, (), steps, tearable, acted.tried[-1].told, self.cpu_s - before)

    def run(self, case: Case) -> Verdict:
        """Run a case."""
        before = self.cpu_s
        tried = self._begin(case)
        steps: Sequence[str] = ()
        tearable: Sequence[int] = ()
        try:
            acted = self._act(case, tried, SCENES[case.scene].action)
            steps, tearable, told = acted.steps, acted.tearable, acted.tried[len(tried)].told
            if case.second is not None and case.second.how != LANDS and not acted.violations:
                again = case._replace(fault=case.second)
                acted = self._act(again, acted.tried, SECOND, acted.shown)
            violations = acted.violations
            if not violations:
                violations = self._aftermath(case, acted)
        except _Lost as lost:
            violations, told = [str(lost)], OPEN
        return Verdict(
            case, tuple(violations), tuple(steps), tuple(tearable), told, self.cpu_s - before
        )

    def _begin(self, case: Case) -> list[_Named]:
        """Put the scene's table in place; return what has been tried on it."""
        template = self._template(case.format_name, case.scene)
        self._restore(template)
        return [_Named(one.action) for one in SCENES[case.scene].wounds]

    def _act(
        self, case: Case, tried: Sequence[_Named], action: str, seen: Names = frozenset()
    ) -> _Acted:
        now = (*tried, _Named(action))
        ended = self.fork(_act, self.path, case, now, seen)
        secrets = _secrets(ended.printed)
        if ended.status == DEATH:
            return _Acted(tried=now, shown=seen, violations=secrets)
        answer: _Acted = self._answer(ended)
        return answer._replace(violations=[*answer.violations, *secrets])

    def _aftermath(self, case: Case, acted: _Acted) -> list[str]:
        ended = self.fork(_mend, self.path, case, acted)
        violations: list[str] = self._answer(ended)
        return violations + _secrets(ended.printed)

    def _answer(self, ended: Ended) -> Any:
        if ended.status:
            lines = ended.printed.strip().splitlines()
            raise _Lost("0: a process ended with: " + " | ".join(lines[-12:]))
        return ended.answer

    # --- tables ----------------------------------------------------------------------------------

    def _template(self, format_name: str, scene: str) -> Path:
        wounds = SCENES[scene].wounds
        key = (format_name, repr(wounds))
        if key not in self._templates:
            kept = self.folder / f"template-{len(self._templates)}"
            shutil.rmtree(self.path, ignore_errors=True)
            self._answer(self.fork(create, self.path, format_name))
            shutil.copytree(self.path, kept)
            for wound in wounds:
                self._wound(kept, format_name, wound)
            self._templates[key] = kept
        return self._templates[key]

    def _wound(self, kept: Path, format_name: str, wound: Wound) -> None:
        self._restore(kept)
        counting = Case(format_name, wound.action)
        steps = self._act(counting, (), wound.action).steps
        numbers = [at for at, name in enumerate(steps, 1) if name == wound.step]
        self._restore(kept)
        fatal = counting._replace(fault=Fault(numbers[wound.which], "before"))
        assert not self._act(fatal, (), wound.action).steps, "it should have died"
        shutil.rmtree(kept)
        shutil.copytree(self.path, kept)

    def _restore(self, kept: Path) -> None:
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.copytree(kept, self.path)

    # --- processes -------------------------------------------------------------------------------

    def fork(self, function: Callable[..., Any], *arguments: Any) -> Ended:
        """Call a function in a process of its own, and wait for it."""
        reading, writing = os.pipe()
        with tempfile.TemporaryFile() as printed:
            process = os.fork()
            if not process:
                os.close(reading)
                _in_child(writing, printed.fileno(), function, arguments)
            os.close(writing)
            with open(reading, "rb") as pipe:
                data = pipe.read()
            _, status, used = os.wait4(process, 0)
            self.cpu_s += used.ru_utime + used.ru_stime
            printed.seek(0)
            text = printed.read().decode(errors="replace")
        answer = pickle.loads(data) if data else None
        return Ended(os.waitstatus_to_exitcode(status), answer, text)


def _in_child(
    writing: int, printed: int, function: Callable[..., Any], arguments: Sequence[Any]
) -> None:
    status = 1
    try:
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        data = pickle.dumps(function(*arguments))
        with open(writing, "wb") as pipe:
            pipe.write(data)
        status = 0
    finally:
        # never back into the loop of the process that was forked
        if status:
            os.write(2, traceback.format_exc().encode())
        os._exit(status)


# --- what the processes do -----------------------------------------------------------------------


class _Named(NamedTuple):
    """A :class:`~tests.crash.check_table.Tried` that can be sent to another process."""

    action: str
    told: str = OPEN

    def tried(self) -> Tried:
        number = self.action.removeprefix("next")
        action = next_write(int(number)) if number.isdigit() else ACTIONS[self.action]
        return Tried(self.action, action.effect, self.told, action.format_name)


class _Acted(NamedTuple):
    """What has come of a write.

    Attributes
    ----------
    steps, tearable
        See :class:`Verdict`.
    tried
        All that has been tried on the table.
    shown
        Names of the effects that were seen.
    is_at_rest
        Whether a write has completed since.
    """

    steps: Sequence[str] = ()
    tearable: Sequence[int] = ()
    tried: tuple[_Named, ...] = ()
    shown: Names = frozenset()
    is_at_rest: bool = False
    violations: Sequence[str] = ()


def _check(path: Path, tried: Sequence[_Named], **more: Any) -> Report:
    return check_table(path, [one.tried() for one in tried], **more)


def _act(path: Path, case: Case, tried: tuple[_Named, ...], seen: Names) -> _Acted:
    """Do the last of what is tried. Who lives on after a fault writes again."""
    name = tried[-1].action
    with MUTANTS[case.mutant]():
        late = case.fault is not None and case.fault.how == LATE
        with lost_sender(path) if late else nullcontext(), counted(case.fault) as steps:
            table = hudi.Table.open(str(path), OPTIONS)
            told = _told(lambda: ACTIONS[name].run(table))
        if told == FAILED and ACTIONS[name].is_finished_by_others:
            told = OPEN
        tried = (*tried[:-1], _Named(name, told))
        acted = _Acted(steps.names, steps.tearable, tried, seen)
        if case.fault is None:
            return acted
        report = _check(path, tried, at_rest=False, seen=seen)
        if report.violations:
            return acted._replace(violations=report.violations)
        number = len(tried)
        next_write(number).run(table)
    tried = (*tried, _Named(f"next{number}", ACKED))
    return acted._replace(tried=tried, shown=report.shown or seen, is_at_rest=True)


def _mend(path: Path, case: Case, acted: _Acted) -> list[str]:
    """Check what a writer has left, write, and check that nothing is left open."""
    rested, tried = acted.is_at_rest, acted.tried
    first = _check(path, tried, at_rest=rested, seen=acted.shown)
    if first.violations:
        return first.violations
    number = len(tried)
    lands = case.second if case.second is not None and case.second.how == LANDS else None
    with MUTANTS[case.mutant](), landing(path, lands.at) if lands else nullcontext():
        table = hudi.Table.open(str(path), OPTIONS)
        scene = SCENES[case.scene]
        if scene.is_repeated:
            ACTIONS[scene.action].run(table)
            tried = tuple(
                one._replace(told=ACKED) if one.action == scene.action else one for one in tried
            )
        next_write(number).run(table)
    tried = (*tried, _Named(f"next{number}", ACKED))
    # who was at rest before is so still, which need not be looked at in full again
    last = _check(path, tried, at_rest=not rested, seen=first.shown or frozenset())
    return last.violations


def _told(run: Callable[[], object]) -> str:
    """Return what a caller is told. Errors that are not the project's are no answer to a caller."""
    try:
        run()
    except CommitStateUnknownError as error:
        _print(error)
        return OPEN
    except HudiError as error:
        _print(error)
        return FAILED
    return ACKED


def _print(error: BaseException) -> None:
    os.write(2, "".join(traceback.format_exception(error)).encode())


def _secrets(printed: str) -> list[str]:
    return [f"11: a secret is printed: {printed}"] if CANARY in printed else []


def counted(fault: Fault | None) -> CountedSteps:
    """Count what changes a table: the disk, data files, and what formats and libraries are told."""
    steps = CountedSteps(fault)
    for hook in HOOKS:
        steps.watch(FormatHost, hook, name=_of("the format"), error=_format_error)
    for call in ("create_write_transaction", "restore"):
        steps.watch(
            DeltaTable, call, name=_of("deltalake"), error=_library_error, torn=_torn_version
        )
    steps.watch(
        delta_creation,
        "create_table_with_add_actions",
        name=_of("deltalake"),
        error=_library_error,
    )
    return steps


def _of(what: str) -> Callable[..., str]:
    return lambda *_, **__: f"of {what}"


def _format_error() -> Exception:
    return StorageError("The store of the format does not answer", "Try again later.")


def _library_error() -> Exception:
    return CommitFailedError("Failed to commit transaction: 0")


def _torn_version(table: DeltaTable, *_: Any, **__: Any) -> None:
    """Leave what deltalake leaves that dies before it gives a version its name."""
    log = Path(table.table_uri.removeprefix("file://")) / "_delta_log"
    (log / "_commit_5c1d8c5e-0d4e-4d2c-9f0c-2a8a5a7b1d11.json.tmp").write_bytes(b'{"commitIn')
