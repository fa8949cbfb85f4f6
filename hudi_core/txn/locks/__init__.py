"""Locks on a table; every one a :class:`~hudi_core.model.protocols.LockProvider`."""

from hudi_core.txn.locks.file import FileLock
from hudi_core.txn.locks.in_process import InProcessLock
from hudi_core.txn.locks.registry import lock_provider

__all__ = ["FileLock", "InProcessLock", "lock_provider"]
