"""One case of the crash rig: a writer meets a fault, the next one comes, and the table is checked.

Everything happens in processes of its own, forked from one that has imported all readers and
writers, and has used those whose threads survive a fork: see `warm_up`.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import os
import pickle
import shutil
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import hudi_core as hudi
from hudi_core.errors import CommitStateUnknownError, HudiError, StorageError
from hudi_core.metadata.maintenance.validator import validate
from hudi_core.metadata.partitions.names import ALL_CHECKS
from hudi_core.plugin.host import FormatHost
from tests.crash.actions import ACTIONS, next_write
from tests.crash.check_table import ACKED, FAILED, OPEN, Report, Tried, check_rows, check_table
from tests.crash.check_unfinished import check_new, check_unfinished
from tests.crash.counting_storage import DEATH, ERRORS, CountedSteps, Fault
from tests.crash.disk_states import KeptStates
from tests.crash.kinds import storage_path
from tests.crash.late_requests import LANDS, LATE, landing, lost_sender
from tests.crash.mutants import MUTANTS
from tests.crash.place import Place, place_of
from tests.crash.readers import foreign_readers
from tests.crash.s3_faults import kind_of_object
from tests.crash.s3_scenes import S3Case
from tests.crash.scenes import SCENES, Scene, Wound
from tests.crash.tables import CANARY, OPTIONS, create


class Ended(NamedTuple):
    """How a forked process ended: its exit status, its answer, and what it has printed."""

    status: int
    answer: Any
    printed: str


def copy_folder(folder: Path, to: Path) -> None:
    """Copy a folder; names of one file stay names of one."""
    names: dict[int, str] = {}

    def copied(name: str, copy: str) -> str:
        found = os.stat(name)
        if found.st_nlink > 1 and names.setdefault(found.st_ino, copy) != copy:
            os.link(names[found.st_ino], copy)
            return copy
        return shutil.copy2(name, copy)

    shutil.copytree(folder, to, copy_function=copied)


def in_child(
    writing: int, printed: int, function: Callable[..., Any], arguments: Sequence[Any]
) -> None:
    """Call a function, send its answer, and end the process."""
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


def warm_up(folder: Path) -> None:
    """Use the project's writers and readers once, as the first use costs each process a third.

    hudi-rs and deltalake stay unused: their threads are gone after a fork, and they hang or refuse.
    A case took 0.36 s of a processor without this and 0.25 s with it (native), 0.53 s and 0.38 s
    (Iceberg).
    """
    for name in ("native", "iceberg"):
        path = folder / f"warm-{name}"
        create(path, name)
        table = hudi.Table.open(str(path), OPTIONS)
        next_write(0).run(table)
        table.incremental()
        validate(table._session.opened.client, ALL_CHECKS)
        for foreign in foreign_readers(path, name).values():
            foreign.rows()
            foreign.by_path()
            list(foreign.files())
        shutil.rmtree(path)


HOOKS: Final = (
    *("complete_write", "complete_clustering", "complete_schema_change"),
    *("complete_compaction", "complete_log_compaction"),
    *("complete_rollback", "before_rollback", "complete_delete_savepoint"),
)


def counted(fault: Fault | None, steps: CountedSteps | None = None) -> CountedSteps:
    """Count what changes a table: the disk, data files, and what formats are told."""
    steps = steps or CountedSteps(fault)
    for hook in HOOKS:
        steps.watch(FormatHost, hook, name=_of("the format"), error=_format_error)
    return steps


def _of(what: str) -> Callable[..., str]:
    return lambda *_, **__: f"of {what}"


def _format_error() -> Exception:
    return StorageError("The store of the format does not answer", "Try again later.")


Names = frozenset[str]
Shape = frozenset[tuple[str, int]]
PRELOADED: Final = (
    *("hudi_core.table", "native_format.plugin", "iceberg_format.plugin", "delta_format.plugin"),
    *("deltalake.fs",),
    *("pyiceberg.io.pyarrow", "pyiceberg.catalog.noop", "pyiceberg.avro.decoder_fast"),
)
"""What every process would import for itself, were it not there when it is forked."""
SECOND: Final = "other"
"""What the second writer does where the first one's recovery is interrupted too."""


class Case(NamedTuple):
    """What goes wrong, where.

    ``format_name``, ``scene``: the table, and what is done to it; see :mod:`tests.crash.scenes`.
    ``fault``: what goes wrong meanwhile; ``None`` for nothing. ``second``: what goes wrong in the
    write that follows; ``None`` where nothing does. A fault may also be one of
    :mod:`tests.crash.late_requests`. ``mutant``: name of a change to the protocol that breaks it;
    see :mod:`tests.crash.mutants`.
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

    ``violations``: broken promises, in words. ``steps``: names of the steps that the action made,
    up to the fault. ``tearable``: numbers of those of which half can be done. ``told``: what the
    caller of the action was told. ``cpu_s``: seconds of the processor.
    """

    case: Case
    violations: tuple[str, ...]
    steps: tuple[str, ...]
    tearable: tuple[int, ...]
    told: str
    cpu_s: float


class Lost(Exception):
    """A process ended that was to answer; says what it has printed."""


@dataclass(slots=True)
class Rig:
    """Runs cases in a folder, one after the other.

    Tables are always put at the same path, as formats record absolute ones.

    ``folder``: where tables are. ``sound``: a folder that rigs share: what one of them found in
    order, the others need not look at. ``cpu_s``: seconds of the processor that its processes took.
    """

    folder: Path
    sound: Path | None = None
    cpu_s: float = 0.0
    _templates: dict[tuple[Any, ...], Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in PRELOADED:
            importlib.import_module(name)
        warm_up(self.folder)
        # a collection in a forked process would copy the pages of all that is there
        gc.collect()
        gc.freeze()
        gc.disable()

    @property
    def path(self) -> Path:
        """Where the table is."""
        return self.folder / "table"

    @property
    def folder_of_sound(self) -> Path:
        """Where the marks of tables are that were found in order."""
        folder = self.sound or self.folder / "sound"
        folder.mkdir(exist_ok=True)
        return folder

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
            if not (violations or acted.is_known):
                violations = self._aftermath(case, acted)
                if acted.mark is not None and not violations:
                    acted.mark.touch()
        except Lost as lost:
            violations, told = [str(lost)], OPEN
        return Verdict(
            case, tuple(violations), tuple(steps), tuple(tearable), told, self.cpu_s - before
        )

    def run_deaths(self, cases: Sequence[Case]) -> list[Verdict]:
        """Run cases of one scene that differ in the step before which the process dies.

        One process keeps what it would leave at each of them: see
        :mod:`tests.crash.disk_states`. What this does not reach is run by itself.
        """
        before = self.cpu_s
        tried = self._begin(cases[0])
        kept = self.folder / "deaths"
        shutil.rmtree(kept, ignore_errors=True)
        now = (*tried, Named(SCENES[cases[0].scene].action))
        ended = self.fork(_act_until_death, self, cases, kept)
        acted = _Acted(tried=now, violations=secrets_in(ended.printed))
        share = (self.cpu_s - before) / len(cases)
        return [self._of_death(case, acted, self._kept_at(case, kept), share) for case in cases]

    def _of_death(self, case: Case, acted: _Acted, state: Path, share_s: float) -> Verdict:
        if not state.exists():
            return self.run(case)
        before = self.cpu_s
        self._restore(state)
        try:
            violations = list(acted.violations) or self._aftermath(case, acted)
        except Lost as lost:
            violations = [str(lost)]
        return Verdict(case, tuple(violations), (), (), OPEN, self.cpu_s - before + share_s)

    def keep_deaths(self, cases: Sequence[Case], kept: Path) -> KeptStates:
        """Return what copies the table before each step at which a case dies."""
        by_step = {case.fault.at: case for case in cases if case.fault is not None}
        return KeptStates(
            list(by_step), lambda at: self._keep(self._kept_at(by_step[at], kept), is_new=True)
        )

    def _kept_at(self, case: Case, kept: Path) -> Path:
        assert case.fault is not None
        return kept / str(case.fault.at)

    def _begin(self, case: Case) -> list[Named]:
        """Put the scene's table in place; return what has been tried on it."""
        template = self._template(case.format_name, case.scene)
        self._restore(template)
        return [Named(SCENES[one.scene].action) for one in SCENES[case.scene].wounds]

    def _act(
        self, case: Case, tried: Sequence[Named], action: str, seen: Names = frozenset()
    ) -> _Acted:
        now = (*tried, Named(action))
        ended = self.fork(_act, self.path, case, now, seen, self.folder_of_sound)
        secrets = secrets_in(ended.printed)
        if ended.status == DEATH:
            return _Acted(tried=now, shown=seen, violations=secrets)
        answer: _Acted = self._answer(ended)
        return answer._replace(violations=[*answer.violations, *secrets])

    def _aftermath(self, case: Case, acted: _Acted) -> list[str]:
        ended = self.fork(_mend, self.path, case, acted, self.folder_of_sound)
        violations: list[str] = self._answer(ended)
        return violations + secrets_in(ended.printed)

    def _answer(self, ended: Ended) -> Any:
        if ended.status:
            lines = ended.printed.strip().splitlines()
            raise Lost("0: a process ended with: " + " | ".join(lines[-12:]))
        return ended.answer

    # --- tables ----------------------------------------------------------------------------------

    def _template(self, format_name: str, scene: str) -> Path:
        wounds, make = SCENES[scene].wounds, SCENES[scene].made
        key = (format_name, make, wounds)
        if key not in self._templates:
            kept = self.folder / f"template-{len(self._templates)}"
            self._remove()
            self._answer(self.fork(make, self.path, format_name))
            self._keep(kept)
            for wound in wounds:
                self._wound(kept, format_name, wound)
            self._templates[key] = kept
        return self._templates[key]

    def _wound(self, kept: Path, format_name: str, wound: Wound) -> None:
        self._restore(kept)
        counting, action = Case(format_name, wound.scene), SCENES[wound.scene].action
        steps = self._act(counting, (), action).steps
        numbers = [at for at, name in enumerate(steps, 1) if name == wound.step]
        self._restore(kept)
        fatal = counting._replace(fault=Fault(numbers[wound.which], "before"))
        assert not self._act(fatal, (), action).steps, "it should have died"
        self._keep(kept)

    def _keep(self, kept: Path, *, is_new: bool = False) -> None:
        for here, there in self._folders(kept):
            if not is_new:
                shutil.rmtree(there, ignore_errors=True)
            if here.exists():
                copy_folder(here, there)

    def _restore(self, kept: Path) -> None:
        self._remove()
        for here, there in self._folders(kept):
            if there.exists():
                copy_folder(there, here)

    def _remove(self) -> None:
        for folder in (self.path, storage_path(self.path)):
            shutil.rmtree(folder, ignore_errors=True)

    def _folders(self, kept: Path) -> Sequence[tuple[Path, Path]]:
        return (self.path, kept), (storage_path(self.path), storage_path(kept))

    # --- processes -------------------------------------------------------------------------------

    def fork(self, function: Callable[..., Any], *arguments: Any) -> Ended:
        """Call a function in a process of its own, and wait for it."""
        reading, writing = os.pipe()
        with tempfile.TemporaryFile() as printed:
            process = os.fork()
            if not process:
                os.close(reading)
                in_child(writing, printed.fileno(), function, arguments)
            os.close(writing)
            with open(reading, "rb") as pipe:
                data = pipe.read()
            _, status, used = os.wait4(process, 0)
            self.cpu_s += used.ru_utime + used.ru_stime
            printed.seek(0)
            text = printed.read().decode(errors="replace")
        answer = pickle.loads(data) if data else None
        return Ended(os.waitstatus_to_exitcode(status), answer, text)


# --- what the processes do
class Named(NamedTuple):
    """A :class:`~tests.crash.check_table.Tried` that can be sent to another process."""

    action: str
    told: str = OPEN

    def tried(self) -> Tried:
        number = self.action.removeprefix("next")
        action = next_write(int(number)) if number.isdigit() else ACTIONS[self.action]
        return Tried(self.action, action.effect, self.told, action.format_name, action.column)


class _Acted(NamedTuple):
    """What has come of a write.

    ``steps``, ``tearable``: see :class:`Verdict`. ``tried``: all that has been tried on the table.
    ``shown``: names of the effects that were seen. ``is_at_rest``: whether a write has completed
    since. ``mark``: says, once it is there, that such a table was found in order; ``None`` for one
    of its own. ``is_known``: whether a table of this shape was written and checked before, whose
    caller was told the same: that is not done again.
    """

    steps: Sequence[str] = ()
    tearable: Sequence[int] = ()
    tried: tuple[Named, ...] = ()
    shown: Names = frozenset()
    is_at_rest: bool = False
    mark: Path | None = None
    is_known: bool = False
    violations: Sequence[str] = ()


def shape_of(place: Place) -> Shape:
    """Return how many files of each kind a table has."""
    return frozenset(
        Counter(kind_of_object(f"/{path}") for path in place.files(hidden=True)).items()
    )


def mark_of(sound: Path, case: Case | S3Case, tried: Sequence[Named], shape: Shape) -> Path:
    """Return the file that is there once a table of this shape was found in order."""
    known = (case._replace(fault=None), list(tried), sorted(shape))
    return sound / hashlib.sha256(repr(known).encode()).hexdigest()


def _check(path: Path, scene: Scene, tried: Sequence[Named], **more: Any) -> Report:
    named = [one.tried() for one in tried]
    if scene.is_new and not more["at_rest"]:
        return check_new(path)
    if scene.is_broken and not more["at_rest"]:
        return check_unfinished(path, scene.source, named, more["seen"])
    return check_table(path, named, **more)


def _act(path: Path, case: Case, tried: tuple[Named, ...], seen: Names, sound: Path) -> _Acted:
    """Do the last of what is tried. Who lives on after a fault writes again."""
    name, scene = tried[-1].action, SCENES[case.scene]
    with MUTANTS[case.mutant]():
        late = case.fault is not None and case.fault.how == LATE
        with lost_sender(path) if late else nullcontext(), counted(case.fault) as steps:
            subject = scene.opened(path, case.format_name)
            told = told_by(lambda: ACTIONS[name].run(subject))
        if told == FAILED and ACTIONS[name].is_finished_by_others:
            told = OPEN
        tried = (*tried[:-1], Named(name, told))
        acted = _Acted(steps.names, steps.tearable, tried, seen)
        if case.fault is None:
            return acted
        report = _check(path, scene, tried, at_rest=False, seen=seen)
        if report.violations:
            return acted._replace(violations=report.violations)
        mark = mark_of(sound, case, tried, shape_of(place_of(path)))
        if case.fault.how in ERRORS and mark.exists():
            return acted._replace(is_known=True)
        tried = _go_on(subject, scene, tried, is_again=scene.is_broken)
    shown = report.shown or seen
    return acted._replace(tried=tried, shown=shown, is_at_rest=True, mark=mark)


def _act_until_death(rig: Rig, cases: Sequence[Case], kept: Path) -> None:
    """Do what a scene does, and keep what is there at each death; the last one is real."""
    case = cases[0]
    scene = SCENES[case.scene]
    with MUTANTS[case.mutant](), counted(None, rig.keep_deaths(cases, kept)):
        subject = scene.opened(rig.path, case.format_name)
        told_by(lambda: ACTIONS[scene.action].run(subject))


def _go_on(
    subject: Any, scene: Scene, tried: tuple[Named, ...], is_again: bool
) -> tuple[Named, ...]:
    """Do what comes after; return all that has been tried then.

    ``subject``: what the scene's action is done to. ``is_again``: whether that is done again at
    first.
    """
    if is_again:
        ACTIONS[scene.action].run(subject)
        tried = tuple(
            one._replace(told=ACKED) if one.action == scene.action else one for one in tried
        )
    if scene.source is not None:
        return tried
    number = len(tried)
    next_write(number).run(subject)
    return (*tried, Named(f"next{number}", ACKED))


def _mend(path: Path, case: Case, acted: _Acted, sound: Path) -> list[str]:
    """Check what a writer has left, write, and check that nothing is left open."""
    rested, tried, scene = acted.is_at_rest, acted.tried, SCENES[case.scene]
    first = _check(path, scene, tried, at_rest=rested, seen=acted.shown)
    if first.violations:
        return first.violations
    lands = case.second if case.second is not None and case.second.how == LANDS else None
    with MUTANTS[case.mutant](), landing(path, lands.at) if lands else nullcontext():
        subject = scene.opened(path, case.format_name)
        is_again = scene.is_repeated or scene.is_broken
        tried = _go_on(subject, scene, tried, is_again=is_again)
    # who was at rest before is so still, which need not be looked at in full again
    is_full = scene.is_broken or not rested
    seen = first.shown or frozenset()
    mark = mark_of(sound, case, tried, shape_of(place_of(path)))
    if mark.exists():
        named = [one.tried() for one in tried]
        return check_rows(path, named, at_rest=is_full, seen=seen).violations
    last = _check(path, scene, tried, at_rest=is_full, seen=seen)
    if is_full and not last.violations:
        mark.touch()
    return last.violations


def told_by(run: Callable[[], object]) -> str:
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


def secrets_in(printed: str) -> list[str]:
    return [f"11: a secret is printed: {printed}"] if CANARY in printed else []
