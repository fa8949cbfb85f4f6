"""Frozen values and protocols; nothing here touches storage."""
