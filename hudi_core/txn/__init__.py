"""Transactions: locks, heartbeats, markers, commits and their recovery."""
