"""The reference of the command `hudi`, made from its declarations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from hudi_core.cli.app import app

_INTRO = """\
# Command line

`hudi COMMAND PATH` works on the table at a path: a folder of this machine or an address such as
`s3://lake/trips`. `hudi --help` lists the commands, `hudi COMMAND --help` shows examples.

| exit code | means |
| --- | --- |
| 0 | done |
| 1 | an error; its message is on the standard error |
| 2 | wrong usage |
| 3 | the outcome of a commit is unknown: look at the table before you repeat it |
| 4 | a check failed |

With `--json` a command writes one object to the standard output, an error too.
"""


def page() -> str:
    """The whole page."""
    root = typer.main.get_command(app)
    return _INTRO + "".join(_of_group(root, ("hudi",)))


def _of_group(group: Any, path: tuple[str, ...]) -> Iterator[str]:
    for name, command in sorted(group.commands.items()):
        if hasattr(command, "commands"):
            yield from _of_group(command, (*path, name))
        else:
            yield _section(command, (*path, name))


def _section(command: Any, path: tuple[str, ...]) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option"]
    usage = " ".join([*path, *(_usage(one) for one in arguments), "[OPTIONS]" if options else ""])
    lines = [f"\n## {' '.join(path)}\n", f"```text\n{usage.strip()}\n```\n", _text(command.help)]
    if arguments or options:
        lines.append("\n| | |\n| --- | --- |")
        lines += [_row(_usage(one), one) for one in arguments]
        lines += [_row(_names(one), one) for one in options]
    if command.epilog:
        examples = "\n".join(command.epilog.split("\n\n")[1:])
        lines.append(f"\n```sh\n{examples}\n```")
    return "\n".join(lines) + "\n"


def _usage(argument: Any) -> str:
    name = argument.metavar or argument.name.upper()
    return name if argument.required else f"[{name}]"


def _names(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return names if option.is_flag or not option.metavar else f"{names} {option.metavar}"


def _row(names: str, parameter: Any) -> str:
    return f"| `{names}` | {_text(parameter.help or '').replace('|', '&#124;')} |"


def _text(text: str) -> str:
    return " ".join((text or "").replace("\b", "").split())
