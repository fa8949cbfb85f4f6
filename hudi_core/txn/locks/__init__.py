"""Locks on a table; every one a :class:`~hudi_core.model.protocols.LockProvider`."""

from hudi_core.txn.locks.file import FileLock
from hudi_core.txn.locks.in_process import HeldLock, InProcessLock
from hudi_core.txn.locks.lock_file import HudiFileLock
from hudi_core.txn.locks.place import LockPlace
from hudi_core.txn.locks.registry import lock_provider
from hudi_core.txn.locks.renewal import Renewal
from hudi_core.txn.locks.storage import StorageLock
from hudi_core.txn.locks.waiting import BothLocks

__all__ = [
    "BothLocks",
    "FileLock",
    "HeldLock",
    "HudiFileLock",
    "InProcessLock",
    "LockPlace",
    "Renewal",
    "StorageLock",
    "lock_provider",
]
