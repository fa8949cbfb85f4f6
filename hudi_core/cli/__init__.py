"""The command `hudi`: tables, timelines and formats from a terminal.

A command lives in a module of its own here, or in another distribution: an entry point of the
group ``hudi.commands`` that is a ``typer.Typer`` application becomes a command of the same name.
"""

from hudi_core.cli.app import app, main

__all__ = ["app", "main"]
