"""The typed host: loading a format, calling its hooks, checking what comes back."""

from __future__ import annotations

from typing import Any, cast

import pytest

from hudi_core.errors import (
    CommitConflictError,
    PluginContractError,
    PluginHookError,
    UnsupportedCapabilityError,
)
from hudi_core.hookspecs import HOOKS
from hudi_core.model import actions
from hudi_core.model.client import MetaClientView, TableSettings
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import InstantTime
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.schema.table_schema import TableSchema
from hudi_core.spi import Capability, FormatCapabilities, FormatCommit, TableFormat, hookimpl
from native_format import NativeTableFormat

CLIENT = cast("MetaClientView", object())
DONE = Instant(
    InstantTime("20260101000000000"),
    Action.COMMIT,
    State.COMPLETED,
    InstantTime("20260101000000001"),
)
COMMIT = CommitMetadata()
NEEDED_BY = {name: hook.needed_by for name, hook in HOOKS.items() if hook.needed_by}


def host_of(plugin: object, **observers: object) -> FormatHost:
    return FormatHost(plugin, observers, name="test")


class Recorder(TableFormat):
    """A format that answers every hook and keeps what it was given."""

    spi_version = "1.0"

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []


def _recording(hook: str) -> Any:
    names = HOOKS[hook].arguments
    answer = "FormatCommit('v')" if HOOKS[hook].returns is FormatCommit else "None"
    space: dict[str, Any] = {"FormatCommit": FormatCommit}
    exec(
        f"def {hook}({', '.join(('self', *names))}):\n"
        f"    self.calls.append(({hook!r}, dict({', '.join(f'{n}={n}' for n in names)})))\n"
        f"    return {answer}\n",
        space,
    )
    function = space[hook]
    function.__qualname__ = f"Recorder.{hook}"
    return function


for _hook in HOOKS:
    if not _hook.startswith("get_") or HOOKS[_hook].is_optional:
        setattr(Recorder, _hook, _recording(_hook))
for _hook in ("get_capabilities", "get_timeline_factory", "get_metadata_factory"):
    setattr(Recorder, _hook, getattr(NativeTableFormat, _hook))


def test_every_method_hands_over_its_arguments_under_their_names() -> None:
    plugin = Recorder()
    host = host_of(plugin)
    clean = cast("actions.CleanMetadata", object())
    plan = cast("actions.CleanerPlan", object())
    rollback = cast("actions.RollbackMetadata", object())
    savepoint = cast("actions.SavepointMetadata", object())
    restore = cast("actions.RestoreMetadata", object())
    restore_plan = cast("actions.RestorePlan", object())
    replaced = ReplaceCommitMetadata()
    options = {"x": "1"}
    host.create(CLIENT)
    host.open(CLIENT)
    host.rebuild(CLIENT)
    settings, columns = cast("TableSettings", object()), cast("TableSchema", object())
    host.check_schema(settings, columns, None)
    host.check_files(CLIENT)
    host.find_publication(CLIENT, DONE)
    host.get_lock_provider(CLIENT, options)
    host.get_conflict_resolution_strategy(CLIENT)
    host.check_write(CLIENT, COMMIT, DONE)
    host.complete_write(CLIENT, COMMIT, DONE, [], "v0")
    host.complete_clustering(CLIENT, replaced, DONE, expected_version="v0")
    host.complete_schema_change(CLIENT, COMMIT, DONE, "v0")
    host.before_clean(CLIENT, plan, DONE, "v0")
    host.complete_clean(CLIENT, clean, DONE, "v0")
    host.archive_instants(CLIENT, [DONE], "v0")
    host.before_rollback(CLIENT, DONE, "v0")
    host.complete_rollback(CLIENT, rollback, DONE, "v0")
    host.complete_savepoint(CLIENT, savepoint, DONE, "v0")
    host.complete_delete_savepoint(CLIENT, DONE, "v0")
    host.check_restore(CLIENT, restore_plan)
    host.before_restore(CLIENT, restore_plan, DONE, "v0")
    host.complete_restore(CLIENT, restore, DONE, "v0")
    seen = dict(plugin.calls)
    views = [arguments.pop("view_manager", None) for arguments in seen.values()]
    assert sum(view is not None for view in views) == 18
    assert seen.pop("check_schema") == {"settings": settings, "schema": columns, "before": None}
    for arguments in seen.values():
        assert arguments.pop("meta_client") is CLIENT
    instant = {"instant": DONE}
    for hook, arguments in seen.items():
        if "expected_version" in HOOKS[hook].arguments:
            assert arguments.pop("expected_version") == "v0"
    assert seen == {
        "create": {},
        "open": {},
        "rebuild": {},
        "check_files": {},
        "find_publication": instant,
        "get_lock_provider": {"lock_options": options},
        "get_conflict_resolution_strategy": {},
        "check_write": {"commit_metadata": COMMIT, **instant},
        "complete_write": {"commit_metadata": COMMIT, "write_statuses": [], **instant},
        "complete_clustering": {
            "replace_commit_metadata": replaced,
            "write_statuses": (),
            **instant,
        },
        "complete_schema_change": {"commit_metadata": COMMIT, **instant},
        "before_clean": {"clean_plan": plan, **instant},
        "complete_clean": {"clean_metadata": clean, **instant},
        "archive_instants": {"archived_instants": [DONE]},
        "before_rollback": instant,
        "complete_rollback": {"rollback_metadata": rollback, **instant},
        "complete_savepoint": {"savepoint_metadata": savepoint, **instant},
        "complete_delete_savepoint": instant,
        "check_restore": {"restore_plan": restore_plan},
        "before_restore": {"restore_plan": restore_plan, **instant},
        "complete_restore": {"restore_metadata": restore, **instant},
    }


def test_the_host_has_a_method_for_every_hook() -> None:
    methods = {name for name in HOOKS if callable(getattr(FormatHost, name, None))}
    # capabilities are read once, at load
    assert methods == set(HOOKS) - {"get_capabilities"}


def test_promotions_that_there_are_not() -> None:
    class Mistaken(NativeTableFormat):
        @hookimpl
        def get_capabilities(self) -> FormatCapabilities:
            return FormatCapabilities.of(Capability.PROMOTE_TYPE, promotions=["int to lung"])

    with pytest.raises(PluginContractError, match="'int to lung'"):
        host_of(Mistaken())


def test_the_native_format_is_found_and_loaded_like_any_other() -> None:
    host = FormatHost.load(FormatRegistry(), "NATIVE")
    assert host.name == "native"
    assert Capability.COPY_ON_WRITE in host.capabilities


# --- contract at load --------------------------------------------------------------------------


def test_a_method_needs_no_marker() -> None:
    class Own(NativeTableFormat):
        def complete_clean(self, instant: Instant, **_: Any) -> FormatCommit:
            return FormatCommit("own")

    class Marked(NativeTableFormat):
        @hookimpl
        def complete_clean(self, instant: Instant, **_: Any) -> FormatCommit:
            return FormatCommit("own")

    for plugin in (Own(), Marked()):
        clean = cast("actions.CleanMetadata", None)
        assert host_of(plugin).complete_clean(CLIENT, clean, DONE).version == "own"


@pytest.mark.parametrize("kind", [staticmethod, classmethod])
def test_hooks_are_methods_of_any_kind(kind: type[Any]) -> None:
    plugin = type("Static", (NativeTableFormat,), {"check_creation": kind(lambda *_, **__: 7)})
    with pytest.raises(PluginContractError, match="check_creation returned a int, not None"):
        host_of(plugin()).check_creation(CLIENT)


def test_what_a_format_does_not_override_answers_for_it() -> None:
    host = host_of(NativeTableFormat())
    assert host.get_lock_provider(CLIENT, {}) is None
    assert host.get_metadata_folders(CLIENT) == ()
    host.archive_instants(CLIENT, [DONE])
    with pytest.raises(PluginContractError, match="it lacks get_capabilities, create, open"):
        host_of(type("Empty", (TableFormat,), {"spi_version": "1.0"})())


def test_a_format_says_for_which_contract_it_is_written() -> None:
    silent = type("Silent", (TableFormat,), {})
    with pytest.raises(PluginContractError, match=r"does not say for which contract.*'1.0'"):
        host_of(silent())
    for wrong in (1, "one", "1.0.0", ""):
        with pytest.raises(PluginContractError, match=r"not the string of a version like"):
            host_of(type("Wrong", (NativeTableFormat,), {"spi_version": wrong})())


def test_required_hooks_are_named() -> None:
    class Bare(TableFormat):
        spi_version = "1.0"

        def get_capabilities(self) -> FormatCapabilities:
            return FormatCapabilities()

    with pytest.raises(PluginContractError) as caught:
        host_of(Bare())
    missing = {name for name, hook in HOOKS.items() if hook.is_required} - {"get_capabilities"}
    assert all(hook in str(caught.value) for hook in missing)
    assert "complete_clustering" not in str(caught.value)
    assert "get_lock_provider" not in str(caught.value)


class NothingDeclared(NativeTableFormat):
    @hookimpl
    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities()


@pytest.mark.parametrize("hook", sorted(NEEDED_BY))
def test_a_declared_ability_needs_its_hooks(hook: str) -> None:
    class Partial(NothingDeclared):
        @hookimpl
        def get_capabilities(self) -> FormatCapabilities:
            return FormatCapabilities(NEEDED_BY[hook])

    setattr(Partial, hook, None)
    with pytest.raises(PluginContractError, match=f"{hook}.*which its capabilities need"):
        host_of(Partial())
    lacking = type("Lacking", (NothingDeclared,), {hook: None})
    assert host_of(lacking()).name == "test"


def test_an_unknown_hook() -> None:
    class Misspelt(NativeTableFormat):
        def complete_wirte(self, instant: Instant) -> FormatCommit:
            return FormatCommit("1")

    with pytest.raises(PluginContractError, match=r"complete_wirte is no hook.*complete_write"):
        host_of(Misspelt())

    class Marked(NativeTableFormat):
        @hookimpl
        def complete_wirte(self, instant: Instant) -> FormatCommit:
            return FormatCommit("1")

    with pytest.raises(PluginContractError, match=r"hook .complete_wirte'.*complete_write"):
        host_of(Marked())


def test_methods_of_other_names_are_nobodys_business() -> None:
    class Helpful(NativeTableFormat):
        def connect(self) -> None: ...
        def _complete_wirte(self) -> None: ...

    assert host_of(Helpful()).name == "test"


def test_a_hook_of_a_later_contract_may_be_marked_optional() -> None:
    class Ahead(NativeTableFormat):
        @hookimpl(optionalhook=True)
        def complete_compaction(self, instant: Instant) -> FormatCommit:
            return FormatCommit("1")

    assert host_of(Ahead()).name == "test"


def test_an_argument_that_the_hook_does_not_have() -> None:
    class Wrong(NativeTableFormat):
        @hookimpl
        def complete_clean(self, plan: object) -> FormatCommit:  # type: ignore[override]
            return FormatCommit("1")

    with pytest.raises(PluginContractError, match=r"'plan'.*did you mean|'plan'.*clean_metadata"):
        host_of(Wrong())


def test_a_format_must_not_wrap() -> None:
    class Wrapping(NativeTableFormat):
        @hookimpl(wrapper=True)
        def complete_clean(self) -> Any:  # type: ignore[override]
            return (yield)

    with pytest.raises(PluginContractError, match="complete_clean is a wrapper"):
        host_of(Wrapping())


def test_one_hook_twice() -> None:
    class Twice(NativeTableFormat):
        @hookimpl(specname="complete_clean")
        def also(self, instant: Instant) -> FormatCommit:
            return FormatCommit("1")

    with pytest.raises(PluginContractError, match="complete_clean is implemented twice"):
        host_of(Twice())


# --- contract at each call ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "complete_write returned None, not FormatCommit"),
        ("v7", "complete_write returned a str, not FormatCommit"),
        (FormatCommit(""), "the receipt of complete_write has the version ''"),
        (FormatCommit(cast("str", 7)), "the receipt of complete_write has the version 7"),
    ],
)
def test_what_is_no_receipt(answer: Any, said: str) -> None:
    class Answering(NativeTableFormat):
        @hookimpl
        def complete_write(self) -> Any:  # type: ignore[override]
            return answer

    with pytest.raises(PluginContractError) as caught:
        host_of(Answering()).complete_write(CLIENT, COMMIT, DONE)
    assert said in str(caught.value)


def test_none_is_an_answer_where_the_contract_says_so() -> None:
    class Silent(NativeTableFormat):
        @hookimpl
        def find_publication(self) -> None:  # type: ignore[override]
            return None

    host = host_of(Silent())
    assert host.find_publication(CLIENT, DONE) is None
    assert host.get_lock_provider(CLIENT, {}) is None
    assert host.get_conflict_resolution_strategy(CLIENT) is None


@pytest.mark.parametrize(
    "hook", ["get_timeline_factory", "get_metadata_factory", "get_lock_provider"]
)
def test_factories_and_locks_of_the_wrong_kind(hook: str) -> None:
    wrong = hookimpl(lambda self: 7)
    plugin = type("Wrong", (NativeTableFormat,), {hook: wrong})()
    arguments: tuple[object, ...] = (CLIENT, {}) if hook == "get_lock_provider" else ()
    with pytest.raises(PluginContractError, match=f"{hook} returned a int, not"):
        getattr(host_of(plugin), hook)(*arguments)


def test_a_hook_without_result_must_not_return_one() -> None:
    class Chatty(NativeTableFormat):
        @hookimpl
        def before_rollback(self) -> Any:  # type: ignore[override]
            return FormatCommit("1")

    with pytest.raises(PluginContractError, match="before_rollback returned a FormatCommit"):
        host_of(Chatty()).before_rollback(CLIENT, DONE)


def failing(error: BaseException) -> FormatHost:
    class Failing(NativeTableFormat):
        @hookimpl
        def complete_write(self) -> FormatCommit:  # type: ignore[override]
            raise error

    return host_of(Failing())


def test_errors_of_the_project_pass_as_they_are() -> None:
    error = CommitConflictError("Somebody was first", "Try again.")
    with pytest.raises(CommitConflictError) as caught:
        failing(error).complete_write(CLIENT, COMMIT, DONE)
    assert caught.value is error
    assert caught.value.retryable


def test_other_errors_are_wrapped_once() -> None:
    error = KeyError("manifest")
    with pytest.raises(PluginHookError) as caught:
        failing(error).complete_write(CLIENT, COMMIT, DONE)
    assert caught.value.__cause__ is error
    assert (caught.value.name, caught.value.hook) == ("test", "complete_write")
    assert "failed in complete_write: KeyError: 'manifest'" in str(caught.value)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3)])
def test_interrupts_pass(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        failing(error).complete_write(CLIENT, COMMIT, DONE)
    assert caught.value is error


def test_undeclared_abilities_are_refused_before_the_format_is_asked() -> None:
    host = host_of(NothingDeclared())
    with pytest.raises(UnsupportedCapabilityError, match="'test' does not support clustering"):
        host.complete_clustering(CLIENT, ReplaceCommitMetadata(), DONE)
    with pytest.raises(UnsupportedCapabilityError, match="savepoint"):
        host.complete_delete_savepoint(CLIENT, DONE)
    with pytest.raises(UnsupportedCapabilityError, match="add column or drop column or promote"):
        host.complete_schema_change(CLIENT, COMMIT, DONE)
    with pytest.raises(UnsupportedCapabilityError, match="merge on read, replace"):
        host.require(Capability.MERGE_ON_READ, Capability.REPLACE)


def test_two_tables_share_nothing() -> None:
    plugin = NativeTableFormat()
    one, other = host_of(plugin), host_of(plugin)
    assert one is not other
    assert one.complete_write(CLIENT, COMMIT, DONE) == other.complete_write(CLIENT, COMMIT, DONE)
