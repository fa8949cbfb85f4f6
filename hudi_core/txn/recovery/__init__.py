"""Rollback, restore, and recovery of what dead writers left."""
