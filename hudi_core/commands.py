"""What commands of other distributions are made of: output, exit codes, progress.

A command is a ``typer.Typer`` under an entry point of the group ``hudi.commands``. With these it
answers as the commands of ``hudi`` do: a table or facts for people, JSON for programs, the exit
codes of scripts, and a bar where a person looks on.
"""

from hudi_core.cli.exit_codes import ExitCode
from hudi_core.cli.output import Facts, Grid, Part, answer
from hudi_core.cli.service import JsonOption
from hudi_core.cli.terminal import progress_bar

__all__ = ["ExitCode", "Facts", "Grid", "JsonOption", "Part", "answer", "progress_bar"]
