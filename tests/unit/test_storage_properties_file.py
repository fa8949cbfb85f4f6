"""hoodie.properties on storage: damage, the backup, and a crash after every step of a change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from hudi_core.config.properties import format_properties, parse_properties, table_checksum
from hudi_core.errors import (
    AlreadyExistsError,
    CorruptMetadataError,
    InvalidOptionError,
    NotATableError,
    PathNotFoundError,
    PreconditionFailedError,
)
from hudi_core.model.files import FileStatus
from hudi_core.model.protocols import Paths, Storage
from hudi_core.storage import properties_file
from hudi_core.storage.posix import PosixStorage
from hudi_core.storage.properties_file import (
    BACKUP_PATH,
    PROPERTIES_PATH,
    has_properties,
    read_properties,
    recover,
    update_properties,
    write_new,
)
from hudi_core.storage.safe_path import require_size

PROPERTIES = {"hoodie.table.name": "t", "hoodie.table.type": "COPY_ON_WRITE"}
CHECKSUM = {"hoodie.table.checksum": str(table_checksum(None, "t"))}


class Crash(BaseException):
    """The process ends here: nothing in the code under test may catch it."""


class MemoryStorage:
    """A dictionary of files that counts changing calls and can end the process at one of them."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = dict(files or {})
        self.steps = 0
        self.crash_at: int | None = None
        self.torn = False

    @property
    def root(self) -> str:
        return "/t"

    def _change(self, path: str, data: bytes | None) -> None:
        self.steps += 1
        dies = self.steps == self.crash_at
        if data is None:
            del self.files[path]
        else:
            self.files[path] = data[: len(data) // 2] if dies and self.torn else data
        if dies:
            raise Crash

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        if path not in self.files:
            raise PathNotFoundError(path)
        require_size(path, len(self.files[path]), max_bytes)
        return self.files[path]

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        return self.read(path)[offset : offset + length]

    def put_if_absent(self, path: str, data: bytes) -> None:
        if path in self.files:
            raise AlreadyExistsError(path)
        self._change(path, data)

    def put(self, path: str, data: bytes) -> None:
        self._change(path, data)

    def head(self, path: str) -> FileStatus | None:
        return FileStatus(path, len(self.files[path])) if path in self.files else None

    def version(self, path: str) -> tuple[bytes, str]:
        data = self.read(path)
        return data, data.hex()

    def compare_and_set(self, path: str, data: bytes, expected: str | None) -> str:
        current = self.files[path].hex() if path in self.files else None
        if current != expected:
            raise PreconditionFailedError(path)
        self._change(path, data)
        return data.hex()

    def list(
        self, prefix: str = "", recursive: bool = False, others: Paths | None = None
    ) -> Iterator[FileStatus]:
        return iter(())

    def list_names(self, folder: str, others: Paths | None = None) -> Sequence[str]:
        return ()

    def list_folders(self, prefix: str = "") -> Sequence[str]:
        return ()

    def delete(self, path: str) -> bool:
        if path not in self.files:
            return False
        self._change(path, None)
        return True

    def discard(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.delete(path)

    def delete_tree(self, prefix: str) -> int:
        return 0


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(properties_file, "_PAUSES_S", (0.0,))


def _table() -> MemoryStorage:
    storage = MemoryStorage()
    checked: Storage = storage
    write_new(checked, PROPERTIES)
    storage.steps = 0
    return storage


def test_written_and_read() -> None:
    storage = _table()
    assert set(storage.files) == {PROPERTIES_PATH}
    assert read_properties(storage) == PROPERTIES | CHECKSUM
    lines = storage.files[PROPERTIES_PATH].splitlines()
    assert lines[0].startswith(b"#Properties saved on 2")
    assert lines[-1].startswith(b"hoodie.table.checksum=")


def test_a_wrong_checksum_is_not_written() -> None:
    storage = MemoryStorage()
    write_new(storage, {"hoodie.table.checksum": "1", **PROPERTIES})
    assert list(read_properties(storage)) == [*PROPERTIES, "hoodie.table.checksum"]
    assert read_properties(storage) == PROPERTIES | CHECKSUM


def test_an_existing_table_is_not_overwritten() -> None:
    storage = _table()
    whole = storage.files[PROPERTIES_PATH]
    for path in (PROPERTIES_PATH, BACKUP_PATH):  # a table may live in its backup
        storage.files = {path: whole}
        assert has_properties(storage)
        with pytest.raises(AlreadyExistsError):
            write_new(storage, PROPERTIES | {"x": "y"})
        assert storage.files == {path: whole}
    with pytest.raises(InvalidOptionError, match=r"hoodie\.table\.name"):
        write_new(MemoryStorage(), {"hoodie.table.type": "COPY_ON_WRITE"})


def test_no_table() -> None:
    assert not has_properties(MemoryStorage())
    with pytest.raises(NotATableError, match="no Hudi table") as caught:
        read_properties(MemoryStorage())
    assert caught.value.base_path == "/t"


@pytest.mark.parametrize("key", ["fs.s3a.secret.key", "hoodie.aws.access_key", "x.session-token"])
def test_secrets_are_never_stored(key: str) -> None:
    storage = _table()
    before = dict(storage.files)
    with pytest.raises(InvalidOptionError, match="secret") as caught:
        update_properties(storage, {key: "canary"})
    assert "canary" not in repr(caught.value)
    assert "canary" not in repr(caught.value.facts)
    assert storage.files == before
    with pytest.raises(InvalidOptionError, match="secret"):
        write_new(MemoryStorage(), {**PROPERTIES, key: "canary"})


def test_update_sets_removes_and_keeps() -> None:
    storage = _table()
    update_properties(storage, {"hoodie.a": "1", "hoodie.b": "2"})
    result = update_properties(storage, {"hoodie.a": None, "hoodie.b": "3", "gone": None})
    assert result == PROPERTIES | CHECKSUM | {"hoodie.b": "3"}
    assert read_properties(storage) == result
    assert set(storage.files) == {PROPERTIES_PATH}
    assert storage.files[PROPERTIES_PATH].startswith(b"#Updated at 2")


def test_no_change_writes_nothing() -> None:
    storage = _table()
    assert update_properties(storage, {"hoodie.table.name": "t", "gone": None}) == (
        PROPERTIES | CHECKSUM
    )
    assert storage.steps == 0
    update_properties(storage, {"a": "b"})
    assert storage.steps == 3  # backup, file, backup away: the crash test walks through them
    result = update_properties(storage, {"hoodie.table.name": "u"})
    assert result["hoodie.table.checksum"] == str(table_checksum(None, "u"))


@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_crash_at_any_step_leaves_old_or_new(step: int, torn: bool) -> None:
    storage = _table()
    old = read_properties(storage)
    new = {**PROPERTIES, "a": "b", **CHECKSUM}
    storage.crash_at, storage.torn = step, torn
    with pytest.raises(Crash):
        update_properties(storage, {"a": "b"})
    storage.crash_at = None
    seen = read_properties(storage)
    assert seen == (old if step == 1 or (step == 2 and torn) else new)
    # the next change finishes or undoes the first, then does its own
    assert update_properties(storage, {"c": "d"}) == seen | {"c": "d"}
    assert read_properties(storage) == seen | {"c": "d"}
    assert set(storage.files) == {PROPERTIES_PATH}


@pytest.mark.parametrize("first", [1, 2, 3])
@pytest.mark.parametrize("second", [1, 2, 3, 4])
def test_a_crash_during_recovery_changes_nothing(first: int, second: int) -> None:
    storage = _table()
    storage.crash_at, storage.torn = first, first == 2
    with pytest.raises(Crash):
        update_properties(storage, {"a": "b"})
    seen = read_properties(storage)
    storage.steps, storage.crash_at, storage.torn = 0, second, False
    try:
        update_properties(storage, {"c": "d"})
    except Crash:
        storage.crash_at = None
        assert read_properties(storage) in (seen, seen | {"c": "d"})
        update_properties(storage, {"c": "d"})
    assert read_properties(storage) == seen | {"c": "d"}
    assert set(storage.files) == {PROPERTIES_PATH}


@pytest.mark.parametrize(
    "damaged",
    [None, b"", b"hoodie.table.name=t\n", b"hoodie.table.name=\\u00\n", b"#" * (1 << 21)],
    ids=["missing", "empty", "no checksum", "malformed", "too large"],
)
def test_the_backup_stands_in(damaged: bytes | None) -> None:
    storage = _table()
    whole = storage.files.pop(PROPERTIES_PATH)
    storage.files[BACKUP_PATH] = whole
    if damaged is not None:
        storage.files[PROPERTIES_PATH] = damaged
    assert read_properties(storage) == PROPERTIES | CHECKSUM
    assert storage.steps == 0, "reading changes nothing"
    recover(storage)
    assert storage.files == {PROPERTIES_PATH: whole}


def test_a_damaged_backup_does_not_stand_in() -> None:
    storage = _table()
    storage.files = {PROPERTIES_PATH: b"a=\\u1", BACKUP_PATH: b"hoodie.table.name=t\n"}
    before = dict(storage.files)
    for call in (read_properties, recover):
        with pytest.raises(CorruptMetadataError, match="malformed") as caught:
            call(storage)
        assert caught.value.path == f"/t/{PROPERTIES_PATH}"
    with pytest.raises(CorruptMetadataError):
        update_properties(storage, {"a": "b"})
    assert storage.files == before
    storage.files = {PROPERTIES_PATH: b"hoodie.table.name=t\n"}
    with pytest.raises(CorruptMetadataError, match="checksum"):
        update_properties(storage, {"a": "b"})
    assert storage.files == {PROPERTIES_PATH: b"hoodie.table.name=t\n"}


class Interfered(MemoryStorage):
    """Another writer without the lock changes the file between our read and our write."""

    def compare_and_set(self, path: str, data: bytes, expected: str | None) -> str:
        theirs = parse_properties(self.files[path]) | {"theirs": "1"}
        self.files[path] = format_properties(theirs)
        return super().compare_and_set(path, data, expected)


def test_a_concurrent_change_is_not_lost() -> None:
    storage = Interfered(_table().files)
    with pytest.raises(PreconditionFailedError):
        update_properties(storage, {"a": "b"})
    assert read_properties(storage)["theirs"] == "1"
    assert set(storage.files) == {PROPERTIES_PATH}


class Replaced(MemoryStorage):
    """The file that is read back is not the one that was written."""

    def compare_and_set(self, path: str, data: bytes, expected: str | None) -> str:
        tag = super().compare_and_set(path, data, expected)
        self.files[path] = b"damaged"
        return tag


def test_what_was_written_is_verified() -> None:
    storage = Replaced(_table().files)
    with pytest.raises(PreconditionFailedError):
        update_properties(storage, {"a": "b"})
    assert read_properties(storage) == PROPERTIES | CHECKSUM


class UpdatedMeanwhile(MemoryStorage):
    """Java ends a change between a reader's look at the file and its look at the backup."""

    def read(self, path: str, max_bytes: int | None = None) -> bytes:
        if path == BACKUP_PATH and PROPERTIES_PATH not in self.files:
            self.files = {PROPERTIES_PATH: format_properties(PROPERTIES | CHECKSUM)}
        return super().read(path, max_bytes)


def test_a_reader_looks_again_when_a_change_ends_under_it() -> None:
    assert read_properties(UpdatedMeanwhile()) == PROPERTIES | CHECKSUM


def test_on_a_local_disk(tmp_path: Path) -> None:
    storage = PosixStorage(str(tmp_path), fsync=False)
    write_new(storage, PROPERTIES)
    assert update_properties(storage, {"a": "b"}) == PROPERTIES | CHECKSUM | {"a": "b"}
    assert read_properties(storage)["a"] == "b"
    assert [path.name for path in (tmp_path / ".hoodie").iterdir()] == ["hoodie.properties"]
