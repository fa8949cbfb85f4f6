"""`hudi formats`: which table formats are installed, and what each can do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hudi_core.cli import library
from hudi_core.cli.output import Grid, Part, answer
from hudi_core.cli.service import JsonOption
from hudi_core.errors import HudiError

if TYPE_CHECKING:
    from hudi_core.config.format_option import FormatOption
    from hudi_core.extension.registry import InstalledExtension
    from hudi_core.plugin.registry import FormatRegistry


def formats(as_json: JsonOption = False) -> None:
    """Show the installed table formats and their options.

    One that cannot be used is shown with the reason.

    Abilities are what can be done with a table of the format now; what the format could hold
    besides is listed separately.
    """
    registry = library.FormatRegistry()
    found = [_document(registry, claim) for claim in registry.installed()]
    answer(as_json, {"formats": found}, _parts(found))


def _parts(found: Sequence[dict[str, Any]]) -> Iterator[Part]:
    headings = ["format", "package", "version", "abilities", "not yet in this release"]
    yield Grid(headings, [_row(document) for document in found], "Table formats")
    options = [_option_row(option) for document in found for option in document["options"]]
    if options:
        yield Grid(["option", "default", "meaning"], options, "Options")


def _document(registry: FormatRegistry, claim: InstalledExtension) -> dict[str, Any]:
    """Return a format; ``error`` is why it is unusable, if so."""
    document: dict[str, Any] = {
        "name": claim.name,
        "distribution": claim.distribution,
        "version": claim.version,
        "target": claim.target,
        "capabilities": [],
        "not_built": [],
        "options": [],
        "error": None,
    }
    try:
        host = library.FormatHost(registry.load(claim.name), name=claim.name)
        options = [_option(claim.name, one) for one in host.get_options() or ()]
    except HudiError as error:
        return {**document, "error": str(error)}
    now = [one.value for one in host.capabilities if one not in library.NOT_BUILT]
    later = [one.value for one in host.capabilities if one in library.NOT_BUILT]
    return {**document, "capabilities": now, "not_built": later, "options": options}


def _option(format_name: str, option: FormatOption[Any]) -> dict[str, Any]:
    return {
        "name": library.option_key(format_name, option.name) + ("*" if option.is_prefix else ""),
        "default": option.shown_default,
        "choices": list(option.choices),
        "stored": option.is_stored,
        "meaning": option.doc,
    }


def _option_row(option: dict[str, Any]) -> list[str]:
    values = f" Values: {', '.join(option['choices'])}." if option["choices"] else ""
    kept = " The table keeps it." if option["stored"] else ""
    return [option["name"], option["default"], f"{option['meaning']}{values}{kept}"]


def _row(document: dict[str, Any]) -> list[str]:
    now, later = (
        ", ".join(one.replace("_", " ") for one in document[key])
        for key in ("capabilities", "not_built")
    )
    status = f"cannot be used: {document['error']}" if document["error"] else now
    return [document["name"], document["distribution"], document["version"], status, later]
