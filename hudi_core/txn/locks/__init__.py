"""Locks on a table; every one a :class:`~hudi_core.model.protocols.LockProvider`."""
