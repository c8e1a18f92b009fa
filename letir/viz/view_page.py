"""A view as HTML: its style and its script around its parts, alone or as a whole page.

A view needs no network and no other file. ``escape_text`` escapes everything in it that comes
from a program, including names and lines of a loaded file. Without JavaScript, as in a notebook
that is not trusted, a view can be read and unfolded.
"""

import os
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

from letir.ast import entry_point
from letir.errors import DTypeError

_FOLDER = Path(__file__).parent
_SHORT = 28  # characters of a cell that stands on one line
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; \
style-src 'unsafe-inline'; script-src 'unsafe-inline'">
<title>{title}</title>
<style>:root {{ color-scheme: light dark }} body {{ margin: 0 }}
.letir {{ min-height: 100vh }}</style>
</head>
<body><main>
{view}
</main></body>
</html>
"""


def escape_text(text: Any, max_length: int = 0) -> str:
    """``text`` as text of an element or an attribute in quotes, cut to ``max_length``
    characters.
    """
    text = str(text)
    return escape(
        text if not max_length or len(text) <= max_length else text[: max_length - 1] + "…"
    )


def html_view(title: str, body: str, *, is_searched: bool = False) -> str:
    """A view with this title and body, both HTML; ``is_searched``: with a field that searches the
    rows of its tables.
    """
    tools = '<div class="tools"></div>' if is_searched else ""
    style, script = style_text(), _file_text("view.js")
    return (
        f'<div class="letir"><style>{style}</style><h3>{title}</h3>{tools}{body}</div>\n'
        f"<script>{script}</script>\n"
    )


def html_page(view: str, title: str) -> str:
    """A whole page that shows ``view``, whose headings are the first two levels of the page."""
    view = view.replace("<h3>", '<h3 aria-level="1">').replace("<h4>", '<h4 aria-level="2">')
    return _PAGE.format(title=escape_text(title), view=view)


@entry_point
def save_page(value: Any, path: str | os.PathLike) -> None:
    """Write what a notebook shows of ``value`` into one HTML file, which needs no other file.

    ``value``: a program, a Gradient, a jitted function, an explanation, a comparison, or any other
    object with a method ``_repr_html_``.

    >>> import os, tempfile
    >>> import numpy as np
    >>> from letir import trace
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_page(trace(np.sin, 1.0), f"{folder}/sine.html")
    ...     os.listdir(folder)
    ['sine.html']
    """
    show = getattr(value, "_repr_html_", None)
    if show is None:
        raise DTypeError(
            f"save_page: {type(value).__name__} has no view\n"
            "  pass a program, a Gradient, a jitted function, or a result of letir.explain"
        )
    title = getattr(value, "__name__", None) or type(value).__name__
    Path(path).write_text(html_page(show(), f"letir: {title}"), encoding="utf-8")


def style_text() -> str:
    """The style of views and pictures."""
    return _file_text("style.css").replace("\n", " ")


def _file_text(name: str) -> str:
    """A file of this package, without indentation and comments."""
    return "\n".join(code_lines(_FOLDER / name))


@cache
def code_lines(path: Path) -> list[str]:
    """The lines of a script or a style, without indentation, comments and empty lines."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if line and not line.startswith(("//", "/* "))]


# ---- tables ----


def html_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    numbers: Sequence[int] = (),
    label: str = "",
) -> str:
    """A table of plain cells, which are escaped; ``numbers``: the columns aligned to the right."""
    kinds = [' class="n"' if i in numbers else "" for i in range(len(heads))]
    head = "".join(
        f'<th scope="col"{kind}>{escape_text(text)}</th>'
        for text, kind in zip(heads, kinds, strict=True)
    )
    lines = [
        "".join(_table_cell(escape_text(x), kind) for x, kind in zip(row, kinds, strict=True))
        for row in rows
    ]
    body = "".join(f"<tr>{line}</tr>\n" for line in lines)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"
    return scrolling_box(table, label)


def _table_cell(text: str, kind: str) -> str:
    """A cell. Short texts, such as types and places, stand on one line; longer ones break."""
    if not kind and " " in text and len(text) <= _SHORT:
        kind = ' class="d"'
    return f"<td{kind}>{text}</td>"


def scrolling_box(body: str, label: str) -> str:
    """``body`` in a box that scrolls, also by the keyboard, with a name for screen readers.

    A group, not a region: a view may have many boxes of one name, and regions are landmarks.
    """
    name = escape_text(label)
    return f'<div class="scroll" tabindex="0" role="group" aria-label="{name}">{body}</div>'


def folding_box(summary: str, body: str, *, is_open: bool = False) -> str:
    """``body`` folded behind a line of text."""
    opening = "<details open>" if is_open else "<details>"
    return f"{opening}<summary>{escape_text(summary)}</summary>{body}</details>"


def paragraph_elements(lines: Iterable[str]) -> str:
    """A paragraph for each line of text."""
    return "".join(f"<p>{escape_text(line)}</p>" for line in lines)
