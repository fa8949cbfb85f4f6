"""What every lock owes, asked of each of them by the tests of its own."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from hudi_core.errors import LockError
from hudi_core.model.protocols import LockProvider
from hudi_core.txn.locks.waiting import owner_of
from hudi_core.txn.table_lock import TableLock
from tests.forked_commands import ForkedCommands

NewLock = Callable[[], LockProvider]

HOLDER = """
import sys
{code}
assert lock.try_lock(10)
print("held", flush=True)
for asked in open(sys.argv[1]):
    print(lock.lease_left(), flush=True)
    lock.unlock()
"""
# one line per critical section: whoever finds the file locked by a rival sees an odd count
RIVAL = """
import sys, time
from pathlib import Path
{code}
count = Path(sys.argv[1])
for _ in range(int(sys.argv[2])):
    assert lock.try_lock(120)
    seen = int(count.read_text())
    time.sleep(0.0005)
    count.write_text(str(seen + 1))
    lock.unlock()
"""
PATIENCE_S = 60


class Holder:
    """A process that has the lock until it is asked what is left of it."""

    def __init__(self, commands: ForkedCommands, code: str, folder: Path) -> None:
        said, self._asked = folder / "said", folder / "asked"
        for pipe in (said, self._asked):
            os.mkfifo(pipe)
        self._commands, self._has_ended = commands, False
        code = HOLDER.format(code=code)
        self._process = commands.start(code, str(self._asked), printed=[said])
        self._said = said.open(encoding="utf-8")
        assert self._said.readline() == "held\n"

    def signal(self, number: int) -> None:
        os.kill(self._process, number)

    def lease_left(self) -> float:
        """What is left by its own account; then it gives the lock back, and ends."""
        self._asked.write_text("left\n")
        return float(self._said.readline())

    def wait(self) -> int:
        self._has_ended = True
        return self._commands.wait(self._process)

    def close(self) -> None:
        self._said.close()
        if not self._has_ended:
            self.signal(signal.SIGKILL)
            self.wait()


def in_other_thread(call: Callable[[], object]) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(call).result()


class LockProviderContract:
    """Subclasses give the fixture ``new``: a function that makes one more provider of one table."""

    def test_it_is_free_then_taken_then_free(self, new: NewLock) -> None:
        one, other = new(), new()
        assert one.try_lock(0)
        assert in_other_thread(lambda: other.try_lock(0)) is False
        one.unlock()
        assert other.try_lock(0)
        other.unlock()

    def test_two_providers_in_one_thread_exclude_each_other(self, new: NewLock) -> None:
        one, other = new(), new()
        assert one.try_lock(0)
        assert not other.try_lock(0.05)
        one.unlock()

    def test_it_is_not_entered_twice(self, new: NewLock) -> None:
        lock = new()
        assert lock.try_lock(0)
        assert not lock.try_lock(5)
        lock.unlock()
        assert in_other_thread(lambda: new().try_lock(0)) is True

    def test_giving_back_what_is_not_held_changes_nothing(self, new: NewLock) -> None:
        holder, other = new(), new()
        holder.unlock()
        assert holder.try_lock(0)
        other.unlock()
        in_other_thread(other.unlock)
        in_other_thread(holder.unlock)  # the owner is a thread, not whoever has the object
        assert not other.try_lock(0)
        holder.unlock()
        holder.unlock()
        assert other.try_lock(0)
        holder.unlock()
        assert not holder.try_lock(0)
        other.unlock()

    def test_it_waits_as_long_as_told(self, new: NewLock) -> None:
        one, other = new(), new()
        assert one.try_lock(0)
        started = time.monotonic()
        assert not other.try_lock(0.3)
        assert 0.25 < time.monotonic() - started < 5
        timer = threading.Timer(0.2, lambda: None)
        timer.start()

        def wait() -> bool:
            return other.try_lock(10)

        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(wait)
            timer.join()
            assert not waiting.done()
            one.unlock()
            assert waiting.result(5)

    turns_of_threads = 15

    def test_no_increment_is_lost_between_threads(self, new: NewLock) -> None:
        shared = new()
        count = 0

        def work(n: int) -> None:
            nonlocal count
            lock = shared if n % 2 else new()
            for _ in range(self.turns_of_threads):
                assert lock.try_lock(60)
                seen = count
                time.sleep(0)
                count = seen + 1
                lock.unlock()

        with ThreadPoolExecutor(16) as pool:
            list(pool.map(work, range(16)))
        assert count == 16 * self.turns_of_threads

    lease_s = math.inf

    def test_it_tells_what_is_left_of_its_lease(self, new: NewLock) -> None:
        lock = new()
        assert lock.try_lock(0)
        assert self.lease_s * 0.9 <= lock.lease_left() <= self.lease_s
        lock.unlock()

    @pytest.mark.impure
    @pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
    def test_a_forked_child_cannot_give_it_back(self, new: NewLock) -> None:
        lock = new()
        assert lock.try_lock(0)
        child = os.fork()
        if child == 0:
            lock.unlock()
            os._exit(0)
        os.waitpid(child, 0)
        assert not new().try_lock(0)
        lock.unlock()
        assert new().try_lock(0)


class ProcessLockContract(LockProviderContract):
    """Of locks that exclude other processes.

    Subclasses give one more fixture: ``code``, Python that binds ``lock`` to one more provider of
    the table. Where locks have leases, ``brief_code`` and ``brief`` make providers whose leases are
    short, so that nobody waits for long.
    """

    rivals, turns = 3, 8

    @pytest.fixture
    def brief(self, new: NewLock) -> NewLock:
        return new

    @pytest.fixture
    def brief_code(self, code: str) -> str:
        return code

    @pytest.fixture
    def holder(
        self, brief_code: str, commands: ForkedCommands, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Holder]:
        with closing(Holder(commands, brief_code, tmp_path_factory.mktemp("holder"))) as process:
            yield process

    def test_it_passes_on_from_a_process_that_is_killed(
        self, brief: NewLock, holder: Holder
    ) -> None:
        lock = brief()
        assert lock.excludes_processes is True
        refused = pytest.raises(LockError, match=r"not free within 0\.1 s.*held by \w+")
        with refused as caught, TableLock(lock, 0.1).held():
            pass
        assert owner_of(lock) == caught.value.facts["owner"]
        holder.signal(signal.SIGKILL)
        holder.wait()
        assert lock.try_lock(PATIENCE_S)
        lock.unlock()

    def test_a_process_that_is_stopped_keeps_it_or_knows_that_it_is_lost(
        self, brief: NewLock, holder: Holder
    ) -> None:
        lock = brief()
        holder.signal(signal.SIGSTOP)
        passes_on = math.isfinite(self.lease_s)
        assert lock.try_lock(PATIENCE_S if passes_on else 0.2) is passes_on
        holder.signal(signal.SIGCONT)
        assert holder.lease_left() == (0 if passes_on else math.inf)
        if passes_on:
            assert holder.wait() == 0
            assert lock.lease_left() > 0
            assert not brief().try_lock(0), "it is not the other's to give back"
            lock.unlock()

    def test_no_increment_is_lost_between_processes(
        self, code: str, tmp_path: Path, commands: ForkedCommands
    ) -> None:
        count = tmp_path / "count"
        count.write_text("0")
        rival = RIVAL.format(code=code)
        rivals = [commands.start(rival, str(count), str(self.turns)) for _ in range(self.rivals)]
        assert [commands.wait(one) for one in rivals] == [0] * self.rivals
        assert count.read_text() == str(self.rivals * self.turns)
