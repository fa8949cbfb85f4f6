"""What is refused of extensions, and that nothing is written then."""

from __future__ import annotations

import warnings
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
from hudi_core.txn.transaction import Transaction
from tests.fake_distributions import Install, fake_distributions
from tests.unit.refusals import files, refused

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
ROWS = pa.table({"id": ["a", "b"], "city": ["Ulm", "Bonn"], "rank": [1, 2]})
CODE = """
import numpy as np
import pyarrow as pa
from hudi_core.spi import (
    BaseConflictStrategy,
    BaseIndex,
    BaseKeyGenerator,
    BaseLockProvider,
    BaseRecordMerger,
    Matches,
)

class Keys(BaseKeyGenerator):
    def record_keys(self, batch):
        return pa.array([f"k-{value}" for value in batch.column("id").to_pylist()])

class Made(Keys):
    makes_partitions = True

class Raising(BaseKeyGenerator):
    def record_keys(self, batch):
        raise ZeroDivisionError("no keys today")

class Few(BaseKeyGenerator):
    def record_keys(self, batch):
        return pa.array(["k"])

class Numbers(BaseKeyGenerator):
    def record_keys(self, batch):
        return pa.array(range(batch.num_rows))

class Empty(BaseKeyGenerator):
    def record_keys(self, batch):
        return pa.array(["k", None])

class OneText(Made):
    def partition_texts(self, batch):
        return []

class Ranks(BaseRecordMerger):
    def ranks(self, columns):
        return columns[0]

class Picky(Ranks):
    def refusal(self, types):
        return "they are boring"

class Nulls(BaseRecordMerger):
    def ranks(self, columns):
        return pa.nulls(len(columns[0]), pa.int64())

class Short(BaseRecordMerger):
    def ranks(self, columns):
        return pa.array([1])

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
def have(install: Install) -> Callable[[str, str], None]:
    """Installs a class of the code above under the name `mine` of the group of an option."""

    def put(option: str, target: str) -> None:
        install("acme", {"mine": f"acme_code:{target}"}, "acme_code", CODE, group=CHOICES[option])

    return put


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a table is to be."""
    return tmp_path / "tables" / "t"


def create(path: Path, options: dict[str, Any]) -> hudi.Table:
    keys = {"record_key": "id", "partition_by": "city", "ordering_field": "rank"}
    return hudi.Table.create(str(path), ROWS.schema, name="t", options=options, **keys)


def create_for(path: Path, option: str) -> hudi.Table:
    """A table with the extension `mine`, or for it."""
    return create(path, {option: "mine"} if option in (KEYGEN, MERGER) else {})


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", [*CHOICES, KEYGEN_CLASS])
def test_an_unknown_name_creates_nothing(path: Path, option: str) -> None:
    with refused(path, UnknownExtensionError, f"{option}='Nobody'", "'nobody'", "known: "):
        create(path, {option: "Nobody"})
    assert not path.exists()


@pytest.mark.parametrize("option", [INDEX, LOCK, CONFLICT])
def test_an_unknown_name_writes_nothing(path: Path, option: str) -> None:
    create(path, {}).insert(ROWS)
    with refused(path, UnknownExtensionError, option, "'nobody'"):
        hudi.Table.open(str(path)).upsert(ROWS, options={option: "nobody"})


@pytest.mark.parametrize("option", [*CHOICES, KEYGEN_CLASS])
@pytest.mark.parametrize("text", ["acme_code:Keys", "acme_code.Keys", "com.acme.Keys"])
def test_a_path_of_a_class_is_none(
    have: Callable[[str, str], None], path: Path, option: str, text: str
) -> None:
    with refused(path, InvalidOptionError, text):
        create(path, {option: text})
    assert not path.exists()


@pytest.mark.parametrize("option", CHOICES)
def test_rivals_are_refused(install: Install, path: Path, option: str) -> None:
    for name in ("acme", "zeta"):
        install(name, {"mine": f"{name}_code:Keys"}, group=CHOICES[option])
    with refused(path, PluginConflictError, "acme, zeta"):
        create(path, {option: "mine"}).insert(ROWS)


@pytest.mark.parametrize("option", [INDEX, LOCK, CONFLICT])
def test_what_is_built_in_has_no_rival(install: Install, path: Path, option: str) -> None:
    built_in = {INDEX: "bloom", LOCK: "in_process", CONFLICT: "partition"}[option]
    install("acme", {built_in: "acme_code:Keys"}, group=CHOICES[option])
    create(path, {}).insert(ROWS)
    if option == INDEX:
        hudi.Table.open(str(path)).upsert(ROWS, options={option: built_in})  # Hudi's own word
    else:
        with refused(path, PluginConflictError, "hudi-core, acme"):
            hudi.Table.open(str(path)).upsert(ROWS, options={option: built_in})


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
    have: Callable[[str, str], None], path: Path, option: str, target: str, error: str
) -> None:
    have(option, target)
    if option == KEYGEN:
        with pytest.raises(PluginLoadError, match=error):
            create_for(path, option)
        assert not path.exists()
        return
    create(path, {}).insert(ROWS)
    with refused(path, PluginLoadError, error):
        hudi.Table.open(str(path)).upsert(ROWS, options={option: "mine"})


# --- what a table keeps --------------------------------------------------------------------------


@pytest.mark.parametrize(("option", "target"), [(KEYGEN, "Keys"), (MERGER, "Ranks")])
@pytest.mark.parametrize("version", ["8", "9"])
def test_a_table_is_read_and_not_written_without_its_extension(
    have: Callable[[str, str], None], path: Path, option: str, target: str, version: str
) -> None:
    have(option, target)
    create(path, {option: "MINE", "hoodie.write.table.version": version}).insert(ROWS)
    hudi.Table.open(str(path)).upsert(ROWS, options={option: "mine"})
    entry_points = path.parents[1] / "acme-1.2.dist-info" / "entry_points.txt"
    entry_points.write_text("")
    entry_points.parent.rename(entry_points.parent.with_name("gone-1.2.dist-info"))

    table = hudi.Table.open(str(path))
    assert sorted(table.to_arrow().column("id").to_pylist()) == ["a", "b"]
    with refused(path, UnknownExtensionError, "'mine'", CHOICES[option]):
        table.upsert(ROWS)
    with refused(path, UnknownExtensionError, "'mine'"):
        hudi.write(ROWS, str(path), "append", {})


@pytest.mark.parametrize(
    ("option", "target", "prefix"),
    [
        (KEYGEN, "Keys", "hoodie.table.keygenerator.mine."),
        (MERGER, "Ranks", "hoodie.record.merge.property.mine."),
    ],
)
def test_options_stay_with_the_table(
    have: Callable[[str, str], None], path: Path, option: str, target: str, prefix: str
) -> None:
    have(option, target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        create(path, {option: "mine", f"{prefix}pace": "slow"}).insert(ROWS)
    table = hudi.Table.open(str(path))
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
    have: Callable[[str, str], None], path: Path, option: str, target: str, other: str
) -> None:
    have(option, target)
    create(path, {option: "mine"}).insert(ROWS)
    with refused(path, OptionConflictError, "mine"):
        hudi.Table.open(str(path)).upsert(ROWS, options={option: other})


# --- key generators ------------------------------------------------------------------------------


def test_generated_keys_have_no_key_generator(have: Callable[[str, str], None], path: Path) -> None:
    have(KEYGEN, "Keys")
    with pytest.raises(InvalidOptionError, match="the table has no record key"):
        hudi.Table.create(str(path), ROWS.schema, name="t", options={KEYGEN: "mine"})
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
def test_wrong_keys_are_not_written(
    have: Callable[[str, str], None], path: Path, target: str, error: type[HudiError], words: str
) -> None:
    have(KEYGEN, target)
    table = create_for(path, KEYGEN)
    with pytest.raises(error, match=words):
        table.insert(ROWS)
    assert table.to_arrow().num_rows == 0
    assert not list(path.rglob("*.parquet"))


def test_partitions_that_were_made_go_on_being_made(
    have: Callable[[str, str], None], install: Install, path: Path
) -> None:
    have(KEYGEN, "Made")
    create_for(path, KEYGEN).insert(ROWS)
    assert hudi.Table.open(str(path)).config.field_types == ()
    place = path.parents[1] / "acme-1.2.dist-info" / "entry_points.txt"
    place.write_text(place.read_text().replace("Made", "Keys"))
    place.parent.rename(place.parent.with_name("acme-1.3.dist-info"))
    with refused(path, PluginContractError, "it made the partitions of this table"):
        hudi.Table.open(str(path)).upsert(ROWS)


# --- record mergers ------------------------------------------------------------------------------


def test_versions_without_ordering_fields_have_no_ranks(
    have: Callable[[str, str], None], path: Path
) -> None:
    have(MERGER, "Ranks")
    with pytest.raises(InvalidOptionError, match="the table has none"):
        hudi.Table.create(
            str(path), ROWS.schema, name="t", record_key="id", options={MERGER: "mine"}
        )
    assert not path.exists()


@pytest.mark.parametrize(
    "rival",
    [
        {"hoodie.write.record.merge.mode": "COMMIT_TIME_ORDERING"},
        {
            "hoodie.datasource.write.payload.class": (
                "org.apache.hudi.common.model.PartialUpdateAvroPayload"
            )
        },
        {"hoodie.table.partial.update.mode": "IGNORE_DEFAULTS", "hoodie.write.table.version": "9"},
    ],
)
def test_rows_are_merged_in_one_way(
    have: Callable[[str, str], None], path: Path, rival: dict[str, str]
) -> None:
    have(MERGER, "Ranks")
    with pytest.raises(InvalidOptionError, match="by the record merger mine"):
        create(path, {MERGER: "mine", **rival})
    assert not path.exists()


def test_columns_that_a_merger_refuses(have: Callable[[str, str], None], path: Path) -> None:
    have(MERGER, "Picky")
    with pytest.raises(SchemaError, match="cannot rank by these columns: they are boring"):
        create_for(path, MERGER)
    assert not path.exists()


@pytest.mark.parametrize(
    ("target", "words"), [("Nulls", "ranks returned 2 nulls"), ("Short", "1 ranks for 2 rows")]
)
def test_versions_without_ranks_are_not_merged(
    have: Callable[[str, str], None], path: Path, target: str, words: str
) -> None:
    have(MERGER, target)
    table = create_for(path, MERGER)
    with pytest.raises(PluginContractError, match=words):
        table.upsert(ROWS.set_column(1, "city", pa.array(["Ulm", "Ulm"])))
    assert table.to_arrow().num_rows == 0


# --- indexes, locks, strategies ------------------------------------------------------------------


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
def test_wrong_matches_change_nothing(
    have: Callable[[str, str], None], path: Path, target: str, words: str
) -> None:
    have(INDEX, target)
    table = create(path, {})
    table.insert(ROWS)
    before = table.to_arrow()
    with pytest.raises(PluginContractError, match=words):
        table.upsert(ROWS, options={INDEX: "mine"})
    assert table.to_arrow() == before


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        ("Lock", PluginContractError, "lock provider 'mine' breaks its contract"),
        ("Moody", ExtensionCallError, "failed in LockProvider.try_lock: OSError: not now"),
    ],
)
def test_a_lock_that_fails_is_not_held(
    have: Callable[[str, str], None], path: Path, target: str, error: type[HudiError], words: str
) -> None:
    create(path, {}).insert(ROWS)
    have(LOCK, target)
    with refused(path, error, words):
        hudi.Table.open(str(path)).upsert(ROWS, options={LOCK: "mine"})


def test_a_strategy_refuses_writes_that_no_other_would(
    have: Callable[[str, str], None], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(path, {}).insert(ROWS)
    have(CONFLICT, "Strict")
    met: list[bool] = []
    commit = Transaction.commit

    def meanwhile(self: Transaction, *args: Any, **more: Any) -> Any:
        if not met:
            met.append(True)
            other = pa.table({"id": ["c"], "city": ["Kiel"], "rank": [1]})
            hudi.Table.open(str(path)).insert(other, options=options)
        return commit(self, *args, **more)

    monkeypatch.setattr(Transaction, "commit", meanwhile)
    mine = pa.table({"id": ["d"], "city": ["Jena"], "rank": [1]})
    options = {"hoodie.write.concurrency.mode": "OPTIMISTIC_CONCURRENCY_CONTROL"}
    with pytest.raises(CommitConflictError, match="there can be one"):
        hudi.Table.open(str(path)).insert(mine, options={**options, CONFLICT: "mine"})
    assert sorted(hudi.Table.open(str(path)).to_arrow().column("id").to_pylist()) == [*"abc"]
    assert files(path)
