"""The pages of the site: which there are, and the navigation that ``docs/index.md`` gives them.

``docs/index.md`` is an ordinary page of headings and lists of links, readable on a code host. The
site's navigation is made from it: a section of the navigation for each heading, with the pages of
the list below it. The reference pages in ``docs/api/`` stand below ``docs/api.md``, and the
notebooks below their heading without being listed.
"""

import posixpath
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INDEX = "docs/index"
PATTERNS = (
    "*.md",
    "docs/*.md",
    "docs/api/*.md",
    "letir/datasets/*.md",
    "notebooks/*.ipynb",
)
NOTEBOOKS = "Notebooks"  # the heading below which all notebooks stand
ENTRY = re.compile(r"^- \[([^\]]+)\]\(([^)#]+)\)", re.MULTILINE)


def pages() -> list[str]:
    """The names of all pages: paths from the root of the repository, without the suffix."""
    found = [path for pattern in PATTERNS for path in ROOT.glob(pattern)]
    return sorted(path.relative_to(ROOT).with_suffix("").as_posix() for path in found)


def below(folder: str) -> list[str]:
    """The names of the pages in a folder."""
    return [name for name in pages() if posixpath.dirname(name) == folder]


def navigation(index: str) -> dict[str, dict[str, str]]:
    """The pages of each section of ``index``, the text of ``docs/index.md``, with titles."""
    return {heading: entries(heading, body) for heading, body in sections(index)}


def with_navigation(index: str) -> str:
    """The text of ``docs/index.md`` with a toctree at the end of each of its sections."""
    head = index.partition("\n## ")[0]
    parts = [
        f"## {heading}\n{body}{toctree(entries(heading, body), heading)}"
        for heading, body in sections(index)
    ]
    return "\n".join([head, *parts])


def sections(index: str) -> list[tuple[str, str]]:
    """The headings of ``docs/index.md`` and what stands below each of them."""
    texts = re.split(r"^## ", index, flags=re.MULTILINE)[1:]
    return [(heading, body) for heading, _, body in (text.partition("\n") for text in texts)]


def entries(heading: str, body: str) -> dict[str, str]:
    """The titles of the pages of a section, by name; '' for the title that the page has itself."""
    found = {}
    for title, target in ENTRY.findall(body):
        found[posixpath.normpath(f"docs/{target.rpartition('.')[0]}")] = title
    return found | (dict.fromkeys(below("notebooks"), "") if heading == NOTEBOOKS else {})


def toctree(titles: dict[str, str], caption: str = "") -> str:
    """A directive that puts pages into the navigation; only that of the notebooks shows a list."""
    options = f":caption: {caption}\n" if caption else ""
    if caption != NOTEBOOKS:
        options += ":hidden:\n"
    lines = [f"{title} </{name}>" if title else f"/{name}" for name, title in titles.items()]
    return "\n```{toctree}\n" + options + "\n" + "\n".join(lines) + "\n```\n"
