"""`hudi formats`: which table formats are installed, and what each can do."""

from __future__ import annotations

from typing import Any

from hudi_core.cli.arguments import JsonOption
from hudi_core.cli.terminal import write_grid, write_json
from hudi_core.errors import HudiError
from hudi_core.plugin.host import FormatHost
from hudi_core.plugin.registry import FormatRegistry, InstalledFormat


def formats(as_json: JsonOption = False) -> None:
    """Show the installed table formats; one that cannot be used is shown with the reason."""
    registry = FormatRegistry()
    found = [_document(registry, claim) for claim in registry.installed()]
    if as_json:
        write_json({"formats": found})
        return
    headings = ["format", "package", "version", "abilities"]
    write_grid("Table formats", headings, [_row(document) for document in found])


def _document(registry: FormatRegistry, claim: InstalledFormat) -> dict[str, Any]:
    """Return a format; ``error`` is ``None``, or says why no table can have it."""
    document: dict[str, Any] = {
        "name": claim.name,
        "distribution": claim.distribution,
        "version": claim.version,
        "target": claim.target,
        "capabilities": [],
        "error": None,
    }
    try:
        host = FormatHost(registry.load(claim.name), name=claim.name)
    except HudiError as error:
        return {**document, "error": str(error)}
    return {**document, "capabilities": [one.value for one in host.capabilities]}


def _row(document: dict[str, Any]) -> list[str]:
    abilities = ", ".join(one.replace("_", " ") for one in document["capabilities"])
    told = f"cannot be used: {document['error']}" if document["error"] else abilities
    return [document["name"], document["distribution"], document["version"], told]
