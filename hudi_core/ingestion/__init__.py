"""Ingestion of a folder's files into a table, each once.

A run lists the folder, and writes the files that no run has read, in commits of a bounded size.
Which files were read is kept by the commit that brings their rows, so that both are there or
neither is.
"""

from hudi_core.ingestion.run import IngestedBatch, IngestResult, ingest

__all__ = ["IngestResult", "IngestedBatch", "ingest"]
