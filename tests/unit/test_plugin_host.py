"""The typed host: a format's members, abilities and answers, and the fence."""

from __future__ import annotations

import ast
import types
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

import native_format
from hudi_core.config.kinds import KeyGeneratorType, MergeOnReadMode, TableType
from hudi_core.config.table import TableConfig
from hudi_core.errors import (
    CommitConflictError,
    PluginContractError,
    PluginHookError,
    UnsupportedCapabilityError,
)
from hudi_core.hookspecs import HOOKS
from hudi_core.meta_client import TableMetaClient
from hudi_core.model import actions
from hudi_core.model.client import MetaClientView, TableSettings
from hudi_core.model.commit import CommitMetadata, ReplaceCommitMetadata
from hudi_core.model.files import BasePath
from hudi_core.model.instant import Action, Instant, State
from hudi_core.model.instant_time import EARLIEST, InstantTime
from hudi_core.plugin import contract
from hudi_core.plugin.capability import require, table_needs
from hudi_core.plugin.contract import implementations_of
from hudi_core.plugin.fenced import pending_publications
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry
from hudi_core.schema.table_schema import TableSchema
from hudi_core.spi import (
    Capability,
    FormatCapabilities,
    FormatCommit,
    Lineage,
    Publication,
    PublishedInstants,
    TableFormat,
    fence,
    hookimpl,
    instant_keys,
)
from hudi_core.storage.options import StorageOptions
from hudi_core.storage.posix import PosixStorage
from hudi_core.timeline.serde import encode
from hudi_core.timeline.timeline import Timeline
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
    host.complete_compaction(CLIENT, COMMIT, DONE, [], "v0")
    host.complete_log_compaction(CLIENT, COMMIT, DONE, expected_version="v0")
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
    assert sum(view is not None for view in views) == 20
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
        "complete_compaction": {"commit_metadata": COMMIT, "write_statuses": [], **instant},
        "complete_log_compaction": {"commit_metadata": COMMIT, "write_statuses": (), **instant},
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


def test_the_native_format_is_found_and_loaded_like_any_other() -> None:
    host = FormatHost.load(FormatRegistry(), "NATIVE")
    assert host.name == "native"
    assert Capability.COPY_ON_WRITE in host.capabilities


# --- contract at load
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


class MisspeltPromotion(NativeTableFormat):
    @hookimpl
    def get_capabilities(self) -> FormatCapabilities:
        return FormatCapabilities.of(Capability.PROMOTE_TYPE, promotions=["int to lung"])


class Misspelt(NativeTableFormat):
    def complete_wirte(self, instant: Instant) -> FormatCommit:
        return FormatCommit("1")


class MisspeltAndMarked(NativeTableFormat):
    @hookimpl
    def complete_wirte(self, instant: Instant) -> FormatCommit:
        return FormatCommit("1")


class OfOtherArguments(NativeTableFormat):
    @hookimpl
    def complete_clean(self, plan: object) -> FormatCommit:  # type: ignore[override]
        return FormatCommit("1")


class Wrapping(NativeTableFormat):
    @hookimpl(wrapper=True)
    def complete_clean(self) -> Any:  # type: ignore[override]
        return (yield)


class Twice(NativeTableFormat):
    @hookimpl(specname="complete_clean")
    def also(self, instant: Instant) -> FormatCommit:
        return FormatCommit("1")


@pytest.mark.parametrize(
    ("plugin", "said"),
    [
        (MisspeltPromotion, "'int to lung'"),
        (Misspelt, r"complete_wirte is no hook.*complete_write"),
        (MisspeltAndMarked, r"hook .complete_wirte'.*complete_write"),
        (OfOtherArguments, r"'plan'.*did you mean|'plan'.*clean_metadata"),
        (Wrapping, "complete_clean is a wrapper"),
        (Twice, "complete_clean is implemented twice"),
    ],
)
def test_what_breaks_the_contract_is_named_at_load(plugin: type, said: str) -> None:
    with pytest.raises(PluginContractError, match=said):
        host_of(plugin())


def test_methods_of_other_names_are_nobodys_business() -> None:
    class Helpful(NativeTableFormat):
        def connect(self) -> None: ...
        def _complete_wirte(self) -> None: ...

    assert host_of(Helpful()).name == "test"


def test_a_hook_of_a_later_contract_may_be_marked_optional() -> None:
    class Ahead(NativeTableFormat):
        @hookimpl(optionalhook=True)
        def complete_indexing(self, instant: Instant) -> FormatCommit:
            return FormatCommit("1")

    assert host_of(Ahead()).name == "test"


# --- contract at each call
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
    # and nothing is returned where there is no result
    chatty = type("Chatty", (NativeTableFormat,), {"before_rollback": lambda *_, **__: "done"})
    with pytest.raises(PluginContractError, match="before_rollback returned a str"):
        host_of(chatty()).before_rollback(CLIENT, DONE)


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


def failing(error: BaseException) -> FormatHost:
    class Failing(NativeTableFormat):
        @hookimpl
        def complete_write(self) -> FormatCommit:  # type: ignore[override]
            raise error

    return host_of(Failing())


@pytest.mark.parametrize(
    "error",
    [CommitConflictError("Somebody was first", "Try again."), KeyboardInterrupt(), SystemExit(3)],
)
def test_interrupts_and_errors_of_the_project_pass_as_they_are(error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        failing(error).complete_write(CLIENT, COMMIT, DONE)
    assert caught.value is error


def test_other_errors_are_wrapped_once() -> None:
    error = KeyError("manifest")
    with pytest.raises(PluginHookError) as caught:
        failing(error).complete_write(CLIENT, COMMIT, DONE)
    assert caught.value.__cause__ is error
    assert (caught.value.name, caught.value.hook) == ("test", "complete_write")
    assert "failed in complete_write: KeyError: 'manifest'" in str(caught.value)


def test_undeclared_abilities_are_refused_before_the_format_is_asked() -> None:
    host = host_of(NothingDeclared())
    with pytest.raises(UnsupportedCapabilityError, match="'test' does not support clustering"):
        host.complete_clustering(CLIENT, ReplaceCommitMetadata(), DONE)
    with pytest.raises(
        UnsupportedCapabilityError,
        match="'test' does not support deletion vectors or merge on read",
    ):
        host.complete_compaction(CLIENT, COMMIT, DONE)
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


# --- which members of a plugin are its hooks, and how often that is looked at
HOOK = "complete_clean"


def _refuse(*_: object) -> NoReturn:
    raise RuntimeError("code of the plugin was run")


class Answering:
    """Answers for its instances."""

    __getattribute__ = _refuse


def test_a_class_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Format(NativeTableFormat):
        pass

    FormatHost(Format(), name="native")
    monkeypatch.setattr(contract, "_checked", _refuse)
    assert (
        FormatHost(Format(), name="native").capabilities == NativeTableFormat().get_capabilities()
    )


def test_a_class_that_breaks_the_contract_is_refused_each_time() -> None:
    class Format:
        def complete_clean(self) -> None: ...

    for _ in range(2):
        with pytest.raises(PluginContractError, match=r"complete_clean.*not marked"):
            implementations_of("odd", Format())


def test_hooks_of_an_instance_are_seen_though_its_class_is_known() -> None:
    class Plain:
        pass

    assert not implementations_of("plain", Plain())
    marked = Plain()
    marked.__dict__[HOOK] = hookimpl(lambda: None)
    assert set(implementations_of("marked", marked)) == {HOOK}
    assert not implementations_of("plain", Plain())
    forgotten = Plain()
    forgotten.__dict__[HOOK] = lambda: None
    with pytest.raises(PluginContractError, match=r"complete_clean.*not marked"):
        implementations_of("forgotten", forgotten)


def test_a_module_has_hooks_of_its_own() -> None:
    for hook in list(HOOKS)[:2]:
        module = types.ModuleType("of_a_plugin")
        module.__dict__[hook] = hookimpl(lambda: None)
        assert set(implementations_of("module", module)) == {hook}


def test_a_hook_may_have_another_name() -> None:
    class Format:
        @hookimpl(specname=HOOK)
        def tidy(self, instant: object) -> None: ...

    (found,) = implementations_of("named", Format()).values()
    assert (found.member, found.arguments) == ("tidy", ("instant",))


def test_what_a_class_inherits_of_the_contract_implements_nothing() -> None:
    inherits: type = type("Format", (TableFormat,), {"spi_version": "1.0"})
    assert not implementations_of("none", object.__new__(inherits))


def test_a_plugin_that_answers_for_its_members_fails_as_a_plugin() -> None:
    with pytest.raises(PluginContractError, match="code of the plugin was run"):
        implementations_of("odd", object.__new__(Answering))


# --- what tables need of their format
PLAIN = {"name": "t", "record_key_fields": ("id",)}


@pytest.mark.parametrize(
    ("settings", "needs"),
    [
        ({}, (Capability.COPY_ON_WRITE, Capability.UNPARTITIONED)),
        (
            {"table_type": TableType.MERGE_ON_READ},
            (Capability.MERGE_ON_READ, Capability.UNPARTITIONED),
        ),
        (
            {
                "table_type": TableType.MERGE_ON_READ,
                "merge_on_read_mode": MergeOnReadMode.SPLIT,
            },
            (Capability.DELETION_VECTORS, Capability.UNPARTITIONED),
        ),
        (
            {"partition_fields": ("city",)},
            (Capability.COPY_ON_WRITE, Capability.IDENTITY_PARTITIONS),
        ),
        (
            {"partition_fields": ("ts",), "keygen_type": KeyGeneratorType.TIMESTAMP},
            (Capability.COPY_ON_WRITE, Capability.TRANSFORMED_PARTITIONS),
        ),
        (
            {"partition_fields": ("ts",), "keygen_type": KeyGeneratorType.CUSTOM},
            (Capability.COPY_ON_WRITE, Capability.TRANSFORMED_PARTITIONS),
        ),
        (
            {"populate_meta_fields": False, "drop_partition_columns": True},
            (
                Capability.COPY_ON_WRITE,
                Capability.UNPARTITIONED,
                Capability.VIRTUAL_KEYS,
                Capability.DROPPED_PARTITION_COLUMNS,
            ),
        ),
    ],
)
def test_needs_of_a_table(settings: dict[str, object], needs: tuple[Capability, ...]) -> None:
    assert table_needs(TableConfig(**{**PLAIN, **settings})) == needs  # type: ignore[arg-type]


def test_nothing_is_supported_that_is_not_declared() -> None:
    for capability in Capability:
        with pytest.raises(UnsupportedCapabilityError, match=f"support {capability.words}. Use"):
            require("test", FormatCapabilities(), [capability])
        require("test", FormatCapabilities.of(capability), [capability])


def test_everything_that_is_missing_is_named() -> None:
    declared = FormatCapabilities.of(Capability.COPY_ON_WRITE)
    with pytest.raises(UnsupportedCapabilityError) as caught:
        require("x", declared, [Capability.COPY_ON_WRITE, Capability.RESTORE, Capability.SAVEPOINT])
    assert caught.value.capability == "restore, savepoint"
    declared = FormatCapabilities.of(reasons={Capability.RESTORE: "nothing is kept"})
    with pytest.raises(UnsupportedCapabilityError, match=r"restore, because nothing is kept\. Use"):
        require("x", declared, [Capability.RESTORE])


def test_promotions_are_all_or_those_that_are_named() -> None:
    assert not FormatCapabilities().can_promote("int to long")
    assert FormatCapabilities.of(Capability.PROMOTE_TYPE).can_promote("int to long")
    some = FormatCapabilities.of(Capability.PROMOTE_TYPE, promotions=["int to long"])
    assert some.can_promote("int to long")
    assert not some.can_promote("float to double")


def test_declarations_iterate_in_the_order_of_the_enumeration() -> None:
    declared = FormatCapabilities.of(Capability.RESTORE, Capability.COPY_ON_WRITE)
    assert list(declared) == [Capability.COPY_ON_WRITE, Capability.RESTORE]
    assert Capability.CLUSTERING not in declared


# --- the fence: what only the Hudi timeline holds is not complete
def time(n: int) -> InstantTime:
    return InstantTime(f"202601010000{n:05d}")


def done(n: int, action: Action = Action.COMMIT, took: int = 5) -> Instant:
    return Instant(time(n), action, State.COMPLETED, time(n + took))


def pending(n: int, action: Action = Action.COMMIT, state: State = State.INFLIGHT) -> Instant:
    return Instant(time(n), action, state)


def published(*instants: Instant) -> list[Publication]:
    return [Publication(one.requested_time, one.action, f"v{n}") for n, one in enumerate(instants)]


def lineage(*instants: Instant, watermark: InstantTime | None = None) -> Lineage:
    return Lineage.of(published(*instants), watermark)


def completed(timeline: Timeline) -> list[Instant]:
    return list(timeline.completed())


@pytest.mark.parametrize("operation", ["UPSERT", None])
def test_what_is_recorded_of_an_instant_is_read_again(operation: str | None) -> None:
    keys = instant_keys(done(10, Action.CLUSTERING), operation)
    assert keys.get("hudi.operation") == operation
    read = Publication.of({**keys, "files": "3"}, "v7")
    assert read == Publication(time(10), Action.REPLACECOMMIT, "v7", time(15))
    del keys["hudi.completion-time"]
    assert Publication.of(keys, "v7").completion_time is None


@pytest.mark.parametrize(
    ("timeline", "lineages"),
    [
        ([done(10), done(20), pending(30)], [lineage(done(10), done(20))]),
        ([done(10), pending(20)], []),  # without publications step 1 is enough
        ([done(10, Action.INDEXING)], [Lineage()]),  # no hook tells of it
    ],
)
def test_what_the_format_holds_stays_complete(
    timeline: list[Instant], lineages: list[Lineage]
) -> None:
    assert fence(Timeline.of(timeline), lineages) == Timeline.of(timeline)


def test_step_1_alone_is_inflight() -> None:
    timeline = Timeline.of([done(10), done(20)])
    fenced = fence(timeline, [lineage(done(10))])
    assert (completed(timeline), completed(fenced)) == ([done(10), done(20)], [done(10)])
    assert fenced.find(time(20)) == Instant(time(20), Action.COMMIT, State.INFLIGHT, time(25))
    assert not fenced.is_committed(time(20))
    assert fenced.is_committed(time(10))
    assert [one.requested_time for one in fenced.completed_writes()] == [time(10)]


def test_a_savepoint_and_its_commit_are_two_instants() -> None:
    savepoint = Instant(time(10), Action.SAVEPOINT, State.COMPLETED, time(40))
    timeline = Timeline.of([done(10), savepoint])
    assert completed(fence(timeline, [lineage(done(10))])) == [done(10)]
    assert completed(fence(timeline, [lineage(savepoint)])) == [savepoint]


def test_a_clustering_is_published_as_the_replacecommit_it_became() -> None:
    clustering = done(10, Action.REPLACECOMMIT)
    held = Lineage.of([Publication(time(10), Action.CLUSTERING, "v0")])
    assert completed(fence(Timeline.of([clustering]), [held])) == [clustering]


@pytest.mark.parametrize(
    "action", [Action.CLEAN, Action.ROLLBACK, Action.RESTORE, Action.DELTACOMMIT]
)
def test_every_kind_of_action_is_fenced(action: Action) -> None:
    timeline = Timeline.of([done(10, action)])
    assert completed(fence(timeline, [Lineage()])) == []
    assert completed(fence(timeline, [lineage(done(10, action))])) == [done(10, action)]


def test_pending_instants_stay_as_they_are() -> None:
    timeline = Timeline.of([pending(10), pending(20, state=State.REQUESTED)])
    # a lineage that names them does not complete them
    fenced = fence(timeline, [lineage(done(10), done(20))])
    assert fenced.instants == fenced.ahead == timeline.instants


def test_the_watermark_counts_completion_times() -> None:
    early, long_one, late = done(10), done(11, took=50), done(20)
    timeline = Timeline.of([early, long_one, late])
    fenced = fence(timeline, [lineage(watermark=time(25))])
    assert completed(fenced) == [early, late]
    assert completed(fence(timeline, [lineage(watermark=EARLIEST)])) == []
    # layout 1 has requested times only
    old = Instant(time(10), Action.COMMIT, State.COMPLETED)
    assert completed(fence(Timeline.of([old]), [lineage(watermark=time(10))])) == [old]


def test_archived_instants_stay_committed() -> None:
    fenced = fence(Timeline.of([done(10), done(20)]), [lineage(done(10))])
    assert fenced.is_committed(time(5))


def test_pending_publications_are_told_from_failed_writes() -> None:
    slow = done(10, took=90)
    timeline = Timeline.of([slow, done(20), pending(30), done(40), done(50)])
    fenced = fence(timeline, [lineage(done(40))])
    assert pending_publications(fenced) == (done(20), done(50), slow)
    assert pending_publications(timeline) == ()


def test_a_lineage_finds_its_publications() -> None:
    held = lineage(done(10), watermark=time(100))
    found = held.find(pending(10))
    assert found is not None
    assert found.version == "v0"
    assert held.find(done(20)) is None
    assert held.holds(done(20))
    assert isinstance(held, PublishedInstants)


# --- the native format through its host, on a table in a folder
FILE = "6d0f2d4c-0000-0000-0000-000000000000-0_0-1-0_{time}.parquet"


@pytest.fixture
def host() -> FormatHost:
    return FormatHost.load(FormatRegistry(), "native")


@pytest.fixture
def client(tmp_path: Path) -> TableMetaClient:
    config = TableConfig(name="t", record_key_fields=("id",), partition_fields=("p",))
    storage = PosixStorage(str(tmp_path), fsync=False)
    return TableMetaClient(BasePath(str(tmp_path)), storage, config, StorageOptions())


def begin(client: TableMetaClient, n: int, action: Action = Action.COMMIT) -> Instant:
    instant = Instant(time(n), action, State.REQUESTED)
    return client.active.to_inflight(client.active.create_requested(instant))


def finish(client: TableMetaClient, instant: Instant, n: int) -> Instant:
    kind = ReplaceCommitMetadata if instant.action is Action.CLUSTERING else CommitMetadata
    return client.active.complete(instant, time(n), encode(kind()))


def test_receipts_are_completion_times(host: FormatHost, client: TableMetaClient) -> None:
    done = Instant(time(10), Action.COMMIT, State.COMPLETED, time(12))
    receipt = FormatCommit(time(12))
    assert host.complete_write(client, CommitMetadata(), done) == receipt
    assert host.complete_clustering(client, ReplaceCommitMetadata(), done) == receipt
    assert host.complete_schema_change(client, CommitMetadata(), done) == receipt
    assert host.complete_clean(client, cast("actions.CleanMetadata", None), done) == receipt
    assert host.complete_rollback(client, cast("actions.RollbackMetadata", None), done) == receipt
    assert host.complete_savepoint(client, cast("actions.SavepointMetadata", None), done) == receipt
    assert host.complete_delete_savepoint(client, done) == receipt
    assert host.complete_restore(client, cast("actions.RestoreMetadata", None), done) == receipt


def test_hooks_before_an_action_leave_the_table_alone(
    host: FormatHost, client: TableMetaClient, tmp_path: Path
) -> None:
    done = finish(client, begin(client, 10), 12)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    host.before_clean(client, cast("actions.CleanerPlan", None), done)
    host.before_rollback(client, done)
    host.before_restore(client, actions.RestorePlan(), done)
    host.archive_instants(client, [done])
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_the_state_found_is_the_last_completion(host: FormatHost, client: TableMetaClient) -> None:
    assert host.create(client) == FormatCommit(EARLIEST)
    finish(client, begin(client, 10), 40)
    finish(client, begin(client, 20), 30)
    begin(client, 50)
    assert host.open(client) == FormatCommit(time(40))


def test_an_instant_is_published_when_the_timeline_holds_it(
    host: FormatHost, client: TableMetaClient
) -> None:
    inflight = begin(client, 10)
    assert host.find_publication(client, inflight) is None
    assert host.find_publication(client, inflight.to(State.COMPLETED, time(12))) is None
    done = finish(client, inflight, 12)
    found = Publication(time(10), Action.COMMIT, time(12), time(12))
    assert host.find_publication(client, done) == found
    # whatever state the caller knows of
    assert host.find_publication(client, inflight) == found
    savepoint = Instant(time(10), Action.SAVEPOINT, State.COMPLETED, time(13))
    assert host.find_publication(client, savepoint) is None
    # an archived write is published, of other actions nothing is known
    archived = Instant(time(5), Action.COMMIT, State.COMPLETED, time(7))
    found = Publication(time(5), Action.COMMIT, time(7), time(7))
    assert host.find_publication(client, archived) == found
    rollback = Instant(time(5), Action.ROLLBACK, State.COMPLETED, time(7))
    assert host.find_publication(client, rollback) is None
    # a clustering is found as what it became
    clustering = begin(client, 20, Action.CLUSTERING)
    finish(client, clustering, 22)
    became = host.find_publication(client, clustering)
    assert became is not None
    assert became.action is Action.REPLACECOMMIT


def test_the_timeline_is_hudis_own(host: FormatHost, client: TableMetaClient) -> None:
    finish(client, begin(client, 10), 12)
    begin(client, 20)
    timeline = host.get_timeline_factory().active_timeline(client)
    assert timeline == client.timeline()


def test_files_are_listed(host: FormatHost, client: TableMetaClient, tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    (tmp_path / "p=1" / FILE.format(time=time(10))).write_bytes(b"x")
    lister = host.get_metadata_factory().create(client)
    [partition] = lister.list_partitions()
    assert partition == "p=1"
    [status] = lister.list_files([partition])[partition]
    assert (status.name, status.size) == (FILE.format(time=time(10)), 1)


def test_hooks_get_the_slices_that_readers_see(client: TableMetaClient, tmp_path: Path) -> None:
    (tmp_path / "p=1").mkdir()
    seen: list[list[str]] = []

    class Looking(NativeTableFormat):
        @hookimpl
        def complete_write(self, view_manager: object, instant: Instant) -> FormatCommit:  # type: ignore[override]
            views = view_manager.view()  # type: ignore[attr-defined]
            seen.append([str(one.base_instant) for one in views.latest_slices()])
            return FormatCommit("1")

    (tmp_path / "p=1" / FILE.format(time=time(10))).write_bytes(b"x")
    (tmp_path / "p=1" / FILE.format(time=time(20))).write_bytes(b"x")
    done = finish(client, begin(client, 10), 12)
    begin(client, 20)
    host = FormatHost(Looking(), name="looking")
    host.complete_write(client, CommitMetadata(), done)
    assert seen == [[time(10)]]


def test_it_imports_nothing_of_the_core_but_the_spi() -> None:
    [folder] = native_format.__path__
    modules = set()
    for file in Path(folder).glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom):
                modules.add(node.module)
            elif isinstance(node, ast.Import):
                modules |= {name.name for name in node.names}
    ours = {name for name in modules if name and name.startswith("hudi_core")}
    assert ours == {"hudi_core.spi", "hudi_core.spi.files"}
