"""Views of all kinds, as the tests of this folder show them, and what they may contain."""

from html.parser import HTMLParser

import numpy as np

import letir as lt
from letir.ast.attrs import Attrs
from letir.ast.primitive import primitive_named
from letir.ast.terms import Bind, Lambda, Local, Ret, Source
from letir.ast.types import ArrayType

EVIL = "</script></style>\"'><img src=x onerror=alert(1)><script>alert(2)</script>&lt;b&gt;"
TAGS = frozenset(
    [
        *("b", "br", "circle", "code", "desc", "details", "div", "g", "h3", "h4", "i", "line", "p"),
        *("path", "rect", "script", "span", "style", "summary", "svg", "table", "tbody", "td"),
        *("text", "th", "thead", "title", "tr"),
    ]
)


def loss(w, x):
    h = np.tanh(x @ w)
    if h.sum() > 0:
        h = h * 2
    return (h * np.exp(h)).sum()


ARGS = np.ones((3, 2)), np.ones((4, 3))


def evil_program() -> Lambda:
    """A program whose names and lines are markup, as those of a file of a stranger may be."""
    f = lt.trace(lambda x: np.sin(x).sum(), np.ones(3))
    kind = ArrayType("float64", (3,))
    x, y, z = Local(kind, EVIL), Local(kind, EVIL), Local(ArrayType("float64", ()), EVIL)
    place = Source(EVIL, 3, text=EVIL)
    sin, total = [bind.op for bind in f.binds]
    binds = [
        Bind((y,), sin, (x,), source=place),
        Bind((z,), total, (y,), Attrs(f.binds[1].attrs), source=place),
        Bind((), primitive_named("guard"), (z,), Attrs({"value": EVIL})),
    ]
    return Lambda((x,), binds, Ret((z,)))


def evil_function():
    """A function with such a name."""

    def called(x):
        return (np.sin(x) * 2.0).sum()

    called.__name__ = called.__qualname__ = EVIL
    return called


class Tags(HTMLParser):
    """The tags of a view, the names of their attributes, its texts, scripts and styles."""

    def __init__(self, html: str):
        super().__init__()
        self.tags, self.attributes, self.texts = set(), set(), {}
        self.open = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open = tag
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)

    def handle_data(self, data):
        self.texts.setdefault(self.open, set()).add(data)


def expect_harmless(html: str) -> None:
    """Raise AssertionError if a view holds markup or a script that is not its own."""
    found = Tags(html)
    script = "".join(found.texts.get("script", ()))
    assert found.tags <= TAGS, found.tags - TAGS
    assert not [name for name in found.attributes if name.startswith("on")]
    assert not {"src", "xlink:href", "srcdoc"} & found.attributes
    assert "alert" not in script and "http" not in html.replace("http://www.w3.org/2000/svg", "")


class Rows(HTMLParser):
    """The rows of tables; | separates the lines of a cell."""

    def __init__(self):
        super().__init__()
        self.rows, self.is_inside = [], False

    def handle_starttag(self, tag, attrs):
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
            self.is_inside = True
        elif tag == "br":
            self.handle_data("|")

    def handle_endtag(self, tag):
        self.is_inside = self.is_inside and tag not in ("td", "th", "tr")

    def handle_data(self, data):
        if self.is_inside:
            self.rows[-1][-1] += data.rstrip("\n")


def shown_rows(html: str) -> list[list[str]]:
    """The cells of each row of the tables of a view, as text."""
    parser = Rows()
    parser.feed(html.partition("<script>")[0])
    return parser.rows
