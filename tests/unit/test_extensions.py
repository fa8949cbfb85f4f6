"""Extensions: found by name, refused with nothing written, and kept by their tables."""

from __future__ import annotations

import logging
import pickle
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudi_core as hudi
from hudi_core.errors import (
    CommitConflictError,
    ExtensionCallError,
    HudiError,
    InvalidOptionError,
    OptionConflictError,
    PluginConflictError,
    PluginContractError,
    PluginLoadError,
    RecordKeyError,
    SchemaError,
    UnknownExtensionError,
)
from hudi_core.extension.registry import ExtensionPoint, InstalledExtension
from hudi_core.txn.transaction import Transaction
from tests.fake_distributions import Install, fake_distributions
from tests.tables import new_table, pairs, rows
from tests.unit.refusals import refused

GROUP = "hudi.test_things"


class Thing(ABC):
    """What an extension of these tests is."""

    @abstractmethod
    def answer(self) -> int: ...


POINT = ExtensionPoint(GROUP, "thing", frozenset({"plain"}), {"org.apache.hudi.Plain": "plain"})
OWN_THING = f"""
from {__name__} import Thing

class Mine(Thing):
    def answer(self):
        return 42

class Half(Thing):
    pass

class Other:
    pass

class Picky(Thing):
    def __init__(self):
        raise KeyError("no luck")
    def answer(self):
        return 0
"""


@pytest.fixture
def things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Thing.__module__])
    yield from fake_distributions(tmp_path, monkeypatch, GROUP)


@pytest.mark.parametrize("text", ["plain", "PLAIN", "org.apache.hudi.Plain"])
def test_names_of_hudi_stand_for_ours(text: str) -> None:
    assert POINT.name(text) == "plain"


@pytest.mark.parametrize("text", ["", "a.b:C", "com.acme.Mine", "ſ", "1st", "x" * 33, "a b"])
def test_a_class_path_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"plain, org\.apache\.hudi\.Plain"):
        POINT.name(text)


def test_an_installed_one_is_found_by_name_and_only_then_imported(things: Install) -> None:
    things("acme-things", {"Mine": "acme_things:Mine"}, "acme_things", OWN_THING)
    assert POINT.names() == ("mine", "plain")
    [found] = POINT.installed()
    assert found == InstalledExtension("mine", "acme-things", "1.2", "acme_things:Mine")
    POINT.require("mine")
    assert "acme_things" not in sys.modules
    assert POINT.make("mine", Thing, lambda kind: kind()).answer() == 42


def test_an_unknown_name_is_refused_with_those_that_there_are(things: Install) -> None:
    things("acme-things", {"mine": "acme_things:Mine"}, "acme_things", OWN_THING)
    with pytest.raises(UnknownExtensionError, match=r"mine, plain.*entry-point") as caught:
        POINT.require("nobody")
    assert (caught.value.known, caught.value.group) == (("mine", "plain"), GROUP)
    with pytest.raises(UnknownExtensionError, match="Did you mean 'mine'"):
        POINT.load("mines", Thing)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (type(copy), str(copy)) == (UnknownExtensionError, str(caught.value))


def test_rivals_are_refused(things: Install) -> None:
    things("acme-things", {"mine": "acme_things:Mine"}, "acme_things", OWN_THING)
    things("zeta-things", {"MINE": "zeta_things:Mine", "plain": "zeta_things:Mine"})
    with pytest.raises(PluginConflictError, match=r"The thing 'mine'.*acme-things, zeta-things"):
        POINT.require("mine")
    with pytest.raises(PluginConflictError, match="hudi-core, zeta-things"):
        POINT.require("plain")


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("acme_things:Half", "lacks answer"),
        ("acme_things:Other", "no class derived from .*Thing"),
        ("acme_things:OWN", "AttributeError"),
        ("acme_missing:Mine", "ModuleNotFoundError"),
    ],
)
def test_one_that_cannot_be_loaded_is_named(things: Install, target: str, reason: str) -> None:
    things("acme-things", {"mine": target}, "acme_things", OWN_THING)
    with pytest.raises(PluginLoadError, match=reason) as caught:
        POINT.load("mine", Thing)
    assert (caught.value.kind, caught.value.distribution) == ("thing", "acme-things")


def test_a_foreign_error_names_the_extension(things: Install) -> None:
    things("acme-things", {"picky": "acme_things:Picky"}, "acme_things", OWN_THING)
    with pytest.raises(ExtensionCallError, match="thing 'picky' failed in __init__: KeyError"):
        POINT.make("picky", Thing, lambda kind: kind())


def test_an_error_of_the_project_passes() -> None:
    def refuse() -> None:
        raise InvalidOptionError("a", "b", "no", "Change it.")

    with pytest.raises(InvalidOptionError):
        POINT.guard("mine").call("answer", refuse)


def test_names_that_are_none_are_left_out(
    things: Install, caplog: pytest.LogCaptureFixture
) -> None:
    things("acme-things", {"a.b": "acme_things:Mine"})
    with caplog.at_level(logging.WARNING):
        assert POINT.names() == ("plain",)
    assert "registers the thing 'a.b'" in caplog.text


KEYGEN = "hoodie.datasource.write.keygenerator.type"
KEYGEN_CLASS = "hoodie.datasource.write.keygenerator.class"
MERGER = "hoodie.write.record.merge.strategy.id"
INDEX = "hoodie.index.type"
LOCK = "hoodie.write.lock.provider"
CONFLICT = "hoodie.write.lock.conflict.resolution.strategy"
CHOICES = {
    KEYGEN: "hudi.key_generators",
    MERGER: "hudi.record_mergers",
    INDEX: "hudi.indexes",
    LOCK: "hudi.lock_providers",
    CONFLICT: "hudi.conflict_strategies",
}
ROWS = rows("a", "b", city=["Ulm", "Bonn"], rank=[1, 2])
Have = Callable[[str, str], None]
CODE = """
import numpy as np
import pyarrow as pa
from hudi_core.spi import *

class Keys(BaseKeyGenerator):
    def record_keys(self, batch):
        return pa.array([f"k-{value}" for value in batch.column("id").to_pylist()])

class Made(Keys):
    makes_partitions = True

class Raising(BaseKeyGenerator):
    def record_keys(self, batch):
        raise ZeroDivisionError("no keys today")

def keys(made):
    class Wrong(BaseKeyGenerator):
        def record_keys(self, batch):
            return pa.array(made)

    return Wrong

Few, Numbers, Empty = keys(["k"]), keys([0, 1]), keys(["k", None])

class OneText(Made):
    def partition_texts(self, batch):
        return []

class Ranks(BaseRecordMerger):
    def ranks(self, columns):
        return columns[0]

class Picky(Ranks):
    def refusal(self, types):
        return "they are boring"

class Short(BaseRecordMerger):
    made = [1]

    def ranks(self, columns):
        return pa.array(self.made, pa.int64())

class Nulls(Short):
    made = [None, None]

class Index(BaseIndex):
    answer = None
    def tag(self, keys, candidates):
        if len(candidates):
            yield self.answer

def pairs(candidate, incoming, stored, kind=np.int32):
    class Wrong(Index):
        answer = Matches(candidate, np.array(incoming, kind), np.array(stored, kind))
    return Wrong

Elsewhere, Unknown, Twice, Wide = (
    pairs(7, [0], [0]), pairs(0, [99], [0]), pairs(0, [0, 0], [1, 1]), pairs(0, [0], [0], np.int64)
)

class Lock(BaseLockProvider):
    excludes_processes = True
    def try_lock(self, timeout_s):
        return "yes"
    def unlock(self):
        pass

class Moody(Lock):
    def try_lock(self, timeout_s):
        raise OSError("not now")

class Strict(BaseConflictStrategy):
    def conflict(self, mine, theirs):
        return "there can be one"

class Half(BaseConflictStrategy):
    pass
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    yield from fake_distributions(tmp_path, monkeypatch, "")


@pytest.fixture
def have(install: Install) -> Have:
    """Installs a class of the code above under the name `mine` of the group of an option."""

    def put(option: str, target: str) -> None:
        install("acme", {"mine": f"acme_code:{target}"}, "acme_code", CODE, group=CHOICES[option])

    return put


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a table is to be."""
    return tmp_path / "tables" / "t"


def create(path: Path, options: dict[str, Any], *, rows: bool = False) -> hudi.Table:
    of = ROWS if rows else ROWS.schema
    return new_table(path, of, options, name="t", ordering_field="rank")


def create_for(path: Path, option: str) -> hudi.Table:
    """A table with the extension `mine`, or for it."""
    return create(path, {option: "mine"} if option in (KEYGEN, MERGER) else {})


def upsert(path: Path, option: str, name: str = "mine") -> None:
    hudi.Table.open(path).upsert(ROWS, options={option: name})


# --- names
@pytest.mark.parametrize("option", [*CHOICES, KEYGEN_CLASS])
def test_an_unknown_name_creates_and_writes_nothing(path: Path, option: str) -> None:
    with refused(path, UnknownExtensionError, f"{option}='Nobody'", "'nobody'", "known: "):
        create(path, {option: "Nobody"})
    assert not path.exists()
    if option in (INDEX, LOCK, CONFLICT):
        create(path, {}, rows=True)
        with refused(path, UnknownExtensionError, option, "'nobody'"):
            upsert(path, option, "nobody")


@pytest.mark.parametrize("option", [*CHOICES, KEYGEN_CLASS])
@pytest.mark.parametrize("text", ["acme_code:Keys", "acme_code.Keys", "com.acme.Keys"])
def test_a_path_of_a_class_is_none(path: Path, option: str, text: str) -> None:
    with refused(path, InvalidOptionError, text):
        create(path, {option: text})
    assert not path.exists()


@pytest.mark.parametrize("option", CHOICES)
def test_rivals_of_every_kind_are_refused(install: Install, path: Path, option: str) -> None:
    for name in ("acme", "zeta"):
        install(name, {"mine": f"{name}_code:Keys"}, group=CHOICES[option])
    with refused(path, PluginConflictError, "acme, zeta"):
        create(path, {option: "mine"}).insert(ROWS)


@pytest.mark.parametrize("option", [INDEX, LOCK, CONFLICT])
def test_what_is_built_in_has_no_rival(install: Install, path: Path, option: str) -> None:
    built_in = {INDEX: "bloom", LOCK: "in_process", CONFLICT: "partition"}[option]
    install("acme", {built_in: "acme_code:Keys"}, group=CHOICES[option])
    create(path, {}, rows=True)
    if option == INDEX:
        upsert(path, option, built_in)  # Hudi's own word
    else:
        with refused(path, PluginConflictError, "hudi-core, acme"):
            upsert(path, option, built_in)


@pytest.mark.parametrize(
    ("option", "target", "error"),
    [
        (KEYGEN, "Ranks", "no class derived from"),
        (KEYGEN, "Missing", "AttributeError"),
        (INDEX, "Keys", "no class derived from"),
        (CONFLICT, "Half", "lacks conflict"),
        (LOCK, "Keys", "no class derived from"),
    ],
)
def test_what_cannot_be_loaded_is_told_before_a_file_is_written(
    have: Have, path: Path, option: str, target: str, error: str
) -> None:
    have(option, target)
    if option == KEYGEN:
        with pytest.raises(PluginLoadError, match=error):
            create_for(path, option)
        assert not path.exists()
        return
    create(path, {}, rows=True)
    with refused(path, PluginLoadError, error):
        upsert(path, option)


# --- what a table keeps
def relabelled(path: Path, version: str, change: Callable[[str], str]) -> None:
    """Install another version, with other entry points."""
    points = path.parents[1] / "acme-1.2.dist-info" / "entry_points.txt"
    points.write_text(change(points.read_text()))
    points.parent.rename(points.parent.with_name(f"{version}.dist-info"))


@pytest.mark.parametrize(("option", "target"), [(KEYGEN, "Keys"), (MERGER, "Ranks")])
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_table_is_read_and_not_written_without_its_extension(
    have: Have, path: Path, option: str, target: str, version: str
) -> None:
    have(option, target)
    create(path, {option: "MINE", "hoodie.write.table.version": version}, rows=True)
    upsert(path, option)
    relabelled(path, "gone-1.2", lambda _: "")
    table = hudi.Table.open(path)
    assert pairs(table.to_arrow("id")) == [("a",), ("b",)]
    with refused(path, UnknownExtensionError, "'mine'", CHOICES[option]):
        table.upsert(ROWS)
    with refused(path, UnknownExtensionError, "'mine'"):
        hudi.write(ROWS, path, "append", {})


@pytest.mark.parametrize(
    ("option", "target", "prefix"),
    [
        (KEYGEN, "Keys", "hoodie.table.keygenerator.mine."),
        (MERGER, "Ranks", "hoodie.record.merge.property.mine."),
    ],
)
def test_options_stay_with_the_table(
    have: Have, path: Path, option: str, target: str, prefix: str
) -> None:
    have(option, target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        create(path, {option: "mine", f"{prefix}pace": "slow"}, rows=True)
    table = hudi.Table.open(path)
    assert table.config.raw[f"{prefix}pace"] == "slow"
    named = table.config.named_keygen or table.config.named_merger
    assert named is not None
    assert (named.name, named.options) == ("mine", (("pace", "slow"),))
    table.upsert(ROWS, options={f"{prefix}pace": "slow"})
    with refused(path, OptionConflictError, "pace", "fast"):
        table.upsert(ROWS, options={f"{prefix}pace": "fast"})
    with pytest.raises(InvalidOptionError, match="keeps no secrets"):
        create(path.with_name("u"), {option: "mine", f"{prefix}password": "x"})


@pytest.mark.parametrize(
    ("option", "target", "other"),
    [
        (KEYGEN, "Keys", "COMPLEX"),
        (KEYGEN, "Keys", "others"),
        (MERGER, "Ranks", "others"),
        (MERGER, "Ranks", "eeb8d96f-b1e4-49fd-bbf8-28ac514178e5"),
    ],
)
def test_another_one_contradicts_the_table(
    have: Have, path: Path, option: str, target: str, other: str
) -> None:
    have(option, target)
    create(path, {option: "mine"}, rows=True)
    with refused(path, OptionConflictError, "mine"):
        upsert(path, option, other)


# --- key generators
def test_generated_keys_have_no_key_generator(have: Have, path: Path) -> None:
    have(KEYGEN, "Keys")
    with pytest.raises(InvalidOptionError, match="the table has no record key"):
        new_table(path, ROWS.schema, {KEYGEN: "mine"}, record_key=None)
    assert not path.exists()


def test_versions_without_ordering_fields_have_no_ranks(have: Have, path: Path) -> None:
    have(MERGER, "Ranks")
    with pytest.raises(InvalidOptionError, match="the table has none"):
        new_table(path, ROWS.schema, {MERGER: "mine"})
    assert not path.exists()


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        ("Raising", ExtensionCallError, "key generator 'mine' failed in record_keys: ZeroDivision"),
        ("Few", PluginContractError, "returned 1 strings for 2 rows"),
        ("Numbers", PluginContractError, "not a pyarrow.StringArray"),
        ("Empty", RecordKeyError, "no record key of id in 1 of 2 rows"),
        ("OneText", PluginContractError, "returned 0 arrays for 1 fields"),
    ],
)
def test_wrong_keys(
    have: Have, path: Path, target: str, error: type[HudiError], words: str
) -> None:
    have(KEYGEN, target)
    table = create_for(path, KEYGEN)
    with pytest.raises(error, match=words):
        table.insert(ROWS)
    assert table.count() == 0
    assert not list(path.rglob("*.parquet"))


def test_partitions_that_were_made_go_on_being_made(have: Have, path: Path) -> None:
    have(KEYGEN, "Made")
    create_for(path, KEYGEN).insert(ROWS)
    assert hudi.Table.open(path).config.field_types == ()
    relabelled(path, "acme-1.3", lambda points: points.replace("Made", "Keys"))
    with refused(path, PluginContractError, "it made the partitions of this table"):
        hudi.Table.open(path).upsert(ROWS)


# --- record mergers
PARTIAL_PAYLOAD = "org.apache.hudi.common.model.PartialUpdateAvroPayload"
PARTIAL_MODE = {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS"}


@pytest.mark.parametrize(
    "rival",
    [
        {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
        {"hoodie.datasource.write.payload.class": PARTIAL_PAYLOAD},
        {**PARTIAL_MODE, "hoodie.write.table.version": "9"},
    ],
)
def test_rows_are_merged_in_one_way(have: Have, path: Path, rival: dict[str, str]) -> None:
    have(MERGER, "Ranks")
    with pytest.raises(InvalidOptionError, match="by the record merger mine"):
        create(path, {MERGER: "mine", **rival})
    assert not path.exists()


def test_columns_that_a_merger_refuses(have: Have, path: Path) -> None:
    have(MERGER, "Picky")
    with pytest.raises(SchemaError, match="cannot rank by these columns: they are boring"):
        create_for(path, MERGER)
    assert not path.exists()


@pytest.mark.parametrize(
    ("target", "words"), [("Nulls", "ranks returned 2 nulls"), ("Short", "1 ranks for 2 rows")]
)
def test_versions_without_ranks_stay(have: Have, path: Path, target: str, words: str) -> None:
    have(MERGER, target)
    table = create_for(path, MERGER)
    with pytest.raises(PluginContractError, match=words):
        table.upsert(ROWS.set_column(1, "city", pa.array(["Ulm", "Ulm"])))
    assert table.count() == 0


# --- indexes, locks, strategies
@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("Index", "returned None, not Matches"),
        ("Elsewhere", "named candidate 7 of 1"),
        ("Unknown", "named an incoming key that is none of"),
        ("Twice", "do not ascend"),
        ("Wide", "no pairs of int32 arrays"),
    ],
)
def test_wrong_matches_change_nothing(have: Have, path: Path, target: str, words: str) -> None:
    have(INDEX, target)
    table = create(path, {}, rows=True)
    before = table.to_arrow()
    with pytest.raises(PluginContractError, match=words):
        upsert(path, INDEX)
    assert table.to_arrow() == before


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        ("Lock", PluginContractError, "lock provider 'mine' breaks its contract"),
        ("Moody", ExtensionCallError, "failed in LockProvider.try_lock: OSError: not now"),
    ],
)
def test_failing_locks(
    have: Have, path: Path, target: str, error: type[HudiError], words: str
) -> None:
    create(path, {}, rows=True)
    have(LOCK, target)
    with refused(path, error, words):
        upsert(path, LOCK)


def test_a_strategy_refuses_writes(have: Have, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create(path, {}, rows=True)
    have(CONFLICT, "Strict")
    commit = Transaction.commit
    options = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    with monkeypatch.context() as patch:

        def meanwhile(self: Transaction, *args: Any, **more: Any) -> Any:
            patch.undo()
            hudi.Table.open(path).insert(rows("c", city="Kiel", rank=1), options=options)
            return commit(self, *args, **more)

        patch.setattr(Transaction, "commit", meanwhile)
        mine = rows("d", city="Jena", rank=1)
        with pytest.raises(CommitConflictError, match="there can be one"):
            hudi.Table.open(path).insert(mine, options={**options, CONFLICT: "mine"})
    assert pairs(hudi.Table.open(path).to_arrow("id")) == [("a",), ("b",), ("c",)]
