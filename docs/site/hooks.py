"""What the pages of the site are made of beside the files of this folder.

mkdocs calls these functions: pages from elsewhere in the project are taken in, references are made
from the code, and paths that a reader of the repository follows become links of the site.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, Final

from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))

import command_line  # noqa: E402 - a neighbour, which mkdocs does not put on the path
import messages  # noqa: E402
import notebook  # noqa: E402

TAKEN_IN: Final = {
    "benchmarks.md": "benchmarks/README.md",
    "changelog.md": "CHANGELOG.md",
    "plugins.md": "plugins/README.md",
    "security.md": "SECURITY.md",
}
"""Pages by the files of the project that they are."""
_MENTION: Final = re.compile(r"`docs/(\w+)\.md`")
_LINK: Final = re.compile(r"\]\((?:\.\./)?(?:docs/)?([\w./]+\.(?:md|ipynb))(#[\w-]+)?\)")
_CELL: Final = re.compile(r"<td\b.*?</td>", re.DOTALL)
_CODE: Final = re.compile(r"(?<=<code>)[^<]*(?=</code>)")
_MESSAGES: Final = "<!-- messages -->"


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that are not files of this folder."""
    for page, source in TAKEN_IN.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "command_line.md", content=command_line.page()))
    files.append(File.generated(config, "quick_start_notebook.md", content=notebook.page(ROOT)))
    download = (ROOT / notebook.NOTEBOOK).read_text(encoding="utf-8")
    files.append(File.generated(config, "quick_start.ipynb", content=download))
    return files


def on_page_markdown(markdown: str, page: Any, **_others: object) -> str:
    """Turn paths of the repository into links of the site; list the messages of errors."""
    if page.file.src_uri == "troubleshooting.md":
        markdown = markdown.replace(_MESSAGES, messages.listing(ROOT))
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _linked(part) for part in parts)


def on_page_content(html: str, **_others: object) -> str:
    """Let names in tables go on in the next line behind a full stop or underscore."""
    return _CELL.sub(lambda cell: _CODE.sub(_breakable, cell[0]), html)


def _breakable(code: re.Match[str]) -> str:
    return re.sub(r"(?<=\w)([._/])(?=\w)", r"\1<wbr>", code[0])


def _linked(text: str) -> str:
    text = _MENTION.sub(r"[\1](\1.md)", text)
    places = {source: page for page, source in TAKEN_IN.items()}
    places[notebook.NOTEBOOK] = "quick_start_notebook.md"

    def link(found: re.Match[str]) -> str:
        path = found[1]
        return f"]({places.get(path, path)}{found[2] or ''})"

    return _LINK.sub(link, text)
