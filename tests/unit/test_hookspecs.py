"""The contract itself: every hook is there, is answered by one plugin, and says what it owes."""

from __future__ import annotations

import dataclasses
import inspect
import re

import pytest

from hudi_core import spi
from hudi_core.hookspecs import HOOKS
from hudi_core.hookspecs.version import parse_version
from hudi_core.model.format import FormatCommit

RFC_93 = {
    "complete_write": "completeWrite",
    "complete_clustering": "completeClustering",
    "complete_compaction": "completeCompaction",
    "complete_log_compaction": "completeLogCompaction",
    "complete_clean": "completeClean",
    "complete_rollback": "completeRollback",
    "archive_instants": "archiveInstants",
    "get_timeline_factory": "getTimelineFactory",
    "get_metadata_factory": "getMetadataFactory",
    "get_lock_provider": "getLockProvider",
    "get_conflict_resolution_strategy": "getConflictResolutionStrategyClassName",
}
ADDED = {
    *("create", "open", "rebuild", "close", "find_publication", "find_table"),
    *("get_options", "get_metadata_folders", "get_registration", "get_capabilities"),
    *("check_schema", "check_files", "check_creation", "check_write", "check_restore"),
    *("before_clean", "before_rollback", "before_restore", "complete_restore"),
    *("complete_savepoint", "complete_delete_savepoint", "complete_schema_change"),
}


def doc(hook: str) -> str:
    return " ".join((inspect.getdoc(HOOKS[hook].function) or "").split())


def test_the_hooks_are_those_of_the_rfc_and_the_ones_the_protocol_needs() -> None:
    assert set(HOOKS) == {*RFC_93, *ADDED}


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_says_its_source_its_time_and_who_must_have_it(hook: str) -> None:
    assert RFC_93.get(hook, "Added to RFC-93") in doc(hook)
    assert re.search(r"Called|When, lock", doc(hook))
    assert "lock" in doc(hook)
    first = (inspect.getdoc(HOOKS[hook].function) or "").split("\n\n")[0]
    if HOOKS[hook].is_optional:
        assert "Optional." in first
    elif HOOKS[hook].needed_by:
        assert "Required by" in first
    else:
        assert first.endswith("Required.")


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_of_an_action_says_what_a_crash_means(hook: str) -> None:
    assert "crash" in doc(hook) or not hook.startswith(("complete", "before"))


@pytest.mark.parametrize("hook", [hook for hook in HOOKS if hook.startswith("complete")])
def test_hooks_of_an_action_take_the_arguments_of_the_rfc(hook: str) -> None:
    names = HOOKS[hook].arguments
    assert names[:2] == ("meta_client", "view_manager")
    assert "instant" in names
    assert HOOKS[hook].returns is FormatCommit


@pytest.mark.parametrize("hook", HOOKS)
def test_arguments_are_given_by_name_among_them_the_expected_version(hook: str) -> None:
    changes = hook.startswith(("complete", "before", "archive"))
    assert ("expected_version" in HOOKS[hook].arguments) == changes
    # so that a plugin may leave out any
    parameters = list(inspect.signature(HOOKS[hook].function).parameters.values())[1:]
    assert {one.kind for one in parameters} <= {inspect.Parameter.KEYWORD_ONLY}
    assert all(one.default is one.empty for one in parameters)


def test_plugin_authors_find_every_field_described() -> None:
    """Of each value that hooks get or return, among its attributes."""
    lacking = []
    for one in (getattr(spi, name) for name in spi.__all__):
        if isinstance(one, type) and dataclasses.is_dataclass(one):
            described = (inspect.getdoc(one) or "").partition("Attributes\n---")[2]
            bases = [inspect.getdoc(base) or "" for base in one.__mro__[1:-1]]
            words = {*re.findall(r"\w+", " ".join([described, *bases]))}
            names = {field.name for field in dataclasses.fields(one)}
            lacking += [f"{one.__name__}.{name}" for name in sorted(names - words)]
    assert not [one for one in lacking if "._" not in one]


def test_contracts_have_a_version() -> None:
    assert parse_version(spi.SPI_VERSION) == (1, 0)
    assert [parse_version(text) for text in ("0", "2.11")] == [(0, 0), (2, 11)]
    assert {parse_version(text) for text in ("1.", "one", "1.0.0", 1, None)} == {None}


def test_plugin_authors_find_every_type_of_the_contract_in_the_spi() -> None:
    for hook in HOOKS:
        signature = inspect.signature(HOOKS[hook].function)
        annotations = [one.annotation for one in signature.parameters.values()][1:]
        for annotation in [*annotations, signature.return_annotation]:
            for word in re.findall(r"[A-Z]\w+", annotation):
                if word not in ("Any", "None", "Mapping", "Sequence"):
                    assert word in spi.__all__, (hook, word)
    assert sorted(spi.__all__) == sorted(set(spi.__all__))


def test_a_format_that_records_says_how_before_it_is_loaded() -> None:
    silent = type("Silent", (spi.RecordingFormat,), {"spi_version": "1.0"})
    with pytest.raises(TypeError, match=r"abstract method '?record"):
        silent()
