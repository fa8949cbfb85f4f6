"""Syncs: tables registered in metastores."""
