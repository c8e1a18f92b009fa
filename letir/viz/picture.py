"""``View`` and ``Picture``, which the functions of ``letir.viz`` return, and parts of pictures."""

import os
from collections.abc import Iterable
from pathlib import Path

from attrs import field, frozen

from letir.errors import LetirError
from letir.viz.view_page import escape_text, html_page, html_view, style_text

_CHARACTER = 7.0  # the width of a character in a picture, in its units


@frozen(eq=False, repr=False)
class View:
    """Something to look at: HTML in a notebook, text in a terminal, a file by ``save``.

    ``body`` is HTML, ``text`` the same as text.
    """

    title: str
    body: str = field(repr=False)
    text: str = field(repr=False)

    def _repr_html_(self):
        return html_view(escape_text(self.title), self.body)

    def __str__(self):
        return self.text

    __repr__ = __str__

    def forms(self) -> dict[str, str]:
        """The texts of the files that ``save`` can write, by the ending of the file's name."""
        page = html_page(self._repr_html_(), self.title)
        return {".html": page, ".txt": self.text + "\n"}

    def save(self, path: str | os.PathLike) -> None:
        """Write a file, in the form that the ending of its name says."""
        forms, end = self.forms(), Path(path).suffix.lower()
        if end not in forms:
            raise LetirError(
                f"{os.fspath(path)}: a view is not written as {end or 'a file without an ending'}\n"
                f"  end the name with {', '.join(sorted(forms))}"
            )
        Path(path).write_text(forms[end], encoding="utf-8")


@frozen(eq=False, repr=False)
class Picture(View):
    """A view with a picture above its body. ``shapes`` are the elements of an SVG image."""

    shapes: str = field(repr=False)
    width: float
    height: float
    about: str = ""  # the text for screen readers
    dot: str = field(default="", repr=False)  # the same graph for Graphviz, if it is one

    def _repr_html_(self):
        return html_view(escape_text(self.title), self._svg("") + self.body)

    def _repr_svg_(self):
        style = f"<style>{style_text()}</style>"
        return self._svg(style, ' class="letir"')

    def forms(self) -> dict[str, str]:
        """The texts of the files that ``save`` can write, by the ending of the file's name."""
        result = {**View.forms(self), ".svg": self._repr_svg_()}
        return {**result, ".dot": self.dot} if self.dot else result

    def _svg(self, style: str, attributes: str = "") -> str:
        width, height = round(self.width), round(self.height)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}"{attributes}>'
            f"<title>{escape_text(self.title)}</title><desc>{escape_text(self.about)}</desc>"
            f"{style}{self.shapes}</svg>"
        )


# ---- shapes ----


def rect_shape(
    x: float, y: float, width: float, height: float, kind: str, *, title: str = "", radius: int = 0
) -> str:
    """A rectangle of this kind, a class of the style; ``title``: shown when it is pointed at."""
    inside = f"<title>{escape_text(title)}</title>" if title else ""
    corner = f' rx="{radius}"' if radius else ""
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" '
        f'height="{max(height, 0):.1f}"{corner}>{inside}</rect>'
    )


def circle_shape(x: float, y: float, radius: float, kind: str, *, title: str = "") -> str:
    """A circle of this kind around a point; ``title``: shown when it is pointed at."""
    inside = f"<title>{escape_text(title)}</title>" if title else ""
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">{inside}</circle>'


def text_shape(x: float, y: float, text: str, kind: str = "", *, end: str = "") -> str:
    """A line of text that begins at a point, or with ``end`` "middle" or "end" is centred or ends
    there."""
    anchor = f' text-anchor="{end}"' if end else ""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}"{anchor}>{escape_text(text)}</text>'


def line_shape(x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'


def width_of(texts: Iterable[str]) -> float:
    """The width of the longest of some texts in a picture."""
    return _CHARACTER * max(map(len, texts), default=0)


def shorten_text(text: str, max_length: int) -> str:
    """``text`` in at most ``max_length`` characters."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def format_seconds(seconds: float) -> str:
    """A time with three digits and a unit: 1.23 ms."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{1e6 * seconds:.3g} us"


def format_bytes(count: float) -> str:
    """A number of bytes with three digits and a unit: 1.23 MB."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} B"
