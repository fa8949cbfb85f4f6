"""The contract itself: every hook is there, is answered by one plugin, and says what it owes."""

from __future__ import annotations

import inspect
import re

import pytest

from hudi_core import spi
from hudi_core.hookspecs import TableFormatHooks
from hudi_core.plugin.contract import HOOKS, NEEDED_BY, OPTIONAL

RFC_93 = {
    "complete_write": "completeWrite",
    "complete_clustering": "completeClustering",
    "complete_clean": "completeClean",
    "complete_rollback": "completeRollback",
    "archive_instants": "archiveInstants",
    "get_timeline_factory": "getTimelineFactory",
    "get_metadata_factory": "getMetadataFactory",
    "get_lock_provider": "getLockProvider",
    "get_conflict_resolution_strategy": "getConflictResolutionStrategyClassName",
}
ADDED = {
    "initialize",
    "get_options",
    "check_schema",
    "check_files",
    "check_creation",
    "get_metadata_folders",
    "get_registration",
    "check_write",
    "before_clean",
    "before_rollback",
    "before_restore",
    "complete_savepoint",
    "complete_delete_savepoint",
    "complete_restore",
    "complete_schema_change",
    "find_publication",
    "find_table",
    "get_capabilities",
}


def doc(hook: str) -> str:
    return " ".join((inspect.getdoc(getattr(TableFormatHooks, hook)) or "").split())


def test_the_hooks_are_those_of_the_rfc_and_the_ones_the_protocol_needs() -> None:
    assert set(HOOKS) == {*RFC_93, *ADDED}


@pytest.mark.parametrize("hook", HOOKS)
def test_one_plugin_answers(hook: str) -> None:
    assert getattr(TableFormatHooks, hook).hudi_spec["firstresult"]


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_names_its_source_and_when_it_is_called(hook: str) -> None:
    assert RFC_93.get(hook, "Added to RFC-93") in doc(hook)
    assert re.search(r"Called|When, lock", doc(hook))
    assert re.search(r"lock", doc(hook))


@pytest.mark.parametrize(
    "hook", [hook for hook in HOOKS if hook.startswith(("complete", "before"))]
)
def test_every_hook_of_an_action_says_what_a_crash_means(hook: str) -> None:
    assert "crash" in doc(hook)


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_says_who_must_have_it(hook: str) -> None:
    first = (inspect.getdoc(getattr(TableFormatHooks, hook)) or "").split("\n\n")[0]
    if hook in OPTIONAL:
        assert "Optional." in first
    elif hook in NEEDED_BY:
        assert "Required by" in first
    else:
        assert first.endswith("Required.")


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook.startswith("complete")])
def test_hooks_of_an_action_take_the_arguments_of_the_rfc(hook: str) -> None:
    names = list(inspect.signature(getattr(TableFormatHooks, hook)).parameters)
    assert names[:3] == ["self", "meta_client", "view_manager"]
    assert "instant" in names
    assert inspect.signature(getattr(TableFormatHooks, hook)).return_annotation == "FormatCommit"


def test_plugin_authors_find_every_type_of_the_contract_in_the_spi() -> None:
    for hook in HOOKS:
        signature = inspect.signature(getattr(TableFormatHooks, hook))
        annotations = [one.annotation for one in signature.parameters.values()][1:]
        for annotation in [*annotations, signature.return_annotation]:
            for word in re.findall(r"[A-Z]\w+", annotation.replace("actions.", "")):
                if word not in ("Any", "None", "Mapping", "Sequence"):
                    assert word in spi.__all__, (hook, word)
    assert sorted(spi.__all__) == sorted(set(spi.__all__))
