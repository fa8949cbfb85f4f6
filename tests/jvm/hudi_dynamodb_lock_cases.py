"""The lock client of AWS Labs, which Hudi takes, and our lock in DynamoDB exclude each other."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hudi_core.config.lock_servers import DynamoLockConfig
from hudi_core.txn.locks.dynamodb import DynamoLock
from tests.jvm.prepare import FOLDER

SOURCE = Path(__file__).with_name("AwsLockClient.java")
LEASE_S = 5
PATIENCE_S = 60


class AwsLock:
    """The lock client in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def answer(self) -> bool:
        assert self.process.stdout is not None
        found = self.process.stdout.readline().strip()
        assert found in {"true", "false"}
        return found == "true"

    def ask(self, what: str) -> bool:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return self.answer()


@pytest.fixture
def lock(s3: Any) -> Iterator[DynamoLock]:
    options = {
        "hoodie.write.lock.dynamodb.endpoint_url": s3.endpoint,
        "hoodie.aws.access.key": "test-access-key",
        "hoodie.aws.secret.key": "test-secret-key",
    }
    lock = DynamoLock(DynamoLockConfig.from_options(options), "jvm_locks", "trips", LEASE_S)
    assert lock.try_lock(0), "it makes the table, which the client expects"
    lock.unlock()
    yield lock
    lock.unlock()


@pytest.fixture
def theirs(s3: Any, lock: DynamoLock) -> Iterator[AwsLock]:
    command = ["java", "-cp", f"{FOLDER}/dynamodb/*", str(SOURCE)]
    command += [s3.endpoint, "jvm_locks", "trips", str(LEASE_S * 1000)]
    keys = {"AWS_ACCESS_KEY_ID": "test-access-key", "AWS_SECRET_ACCESS_KEY": "test-secret-key"}
    with subprocess.Popen(
        command, stdin=-1, stdout=-1, text=True, env={**os.environ, **keys}
    ) as process:
        theirs = AwsLock(process)
        assert theirs.answer(), "the table is one of theirs"
        yield theirs
        process.kill()


def test_they_exclude_each_other(lock: DynamoLock, theirs: AwsLock) -> None:
    assert theirs.ask("take")
    assert not lock.try_lock(LEASE_S + 2), "it is renewed"
    assert theirs.ask("release")
    assert lock.try_lock(0)
    assert not theirs.ask("take"), "it waits for a whole lease, and sees renewals"
    assert lock.lease_left() > 0
    lock.unlock()
    assert theirs.ask("take")
    assert theirs.ask("release")


def test_the_lock_of_a_process_that_is_gone_passes_on(lock: DynamoLock, theirs: AwsLock) -> None:
    assert lock.try_lock(0)
    hold = lock._held
    assert hold is not None
    hold.renewal.stop()  # as where the process is no more
    assert theirs.ask("take")
    assert lock.lease_left() == 0
    lock.unlock()
    assert not lock.try_lock(0)
    theirs.process.send_signal(signal.SIGSTOP)
    started = time.monotonic()
    assert lock.try_lock(PATIENCE_S)
    assert time.monotonic() - started > LEASE_S / 2
    theirs.process.send_signal(signal.SIGCONT)
    assert not theirs.ask("release"), "it knows that it was lost"
    assert lock.lease_left() > 0
