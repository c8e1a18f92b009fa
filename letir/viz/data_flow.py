"""``graph``: the data flow of a program, grouped by the user's lines or functions.

Consecutive binds from one line are a group. A program of many binds shows one box for each group;
a very long program also shows one box for all groups in the middle.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from attrs import define, field

from letir.ast import entry_point
from letir.ast.source import Source
from letir.ast.terms import Bind, Lambda, Local
from letir.ast.text.printer import Printer
from letir.errors import LetirError
from letir.viz.layered_layout import Layout, layered_layout
from letir.viz.picture import Picture, rect_shape, shorten_text, text_shape, width_of
from letir.viz.shown_programs import function_of, shown_program, source_line_of
from letir.viz.view_page import escape_text

_MAX_GROUPS = 60
_MAX_LENGTH = 46  # characters of a line in a box
_MAX_NAMES = 5
_LINE = 15.0  # the height of a line of text
_PAD = 9.0


def _line_of(source: Source | None) -> str:
    """The user's line."""
    return source.short if source else ""


_CLUSTERS: dict[str, Callable[[Source | None], str]] = {
    "line": _line_of,
    "function": function_of,
}


@entry_point
def graph(program: Any, *, cluster: str = "line", max_binds: int = 120) -> Picture:
    """The data flow of a program as a picture: a box for each operation, an edge for each use.

    Consecutive operations from the same line of your code form a group, with
    ``cluster="function"`` consecutive operations from the same function. A program of more than
    ``max_binds`` binds shows a box for each group. ``program``: a Lambda, a Gradient or a compiled
    program. The picture is shown in notebooks, printed as text, and saved as SVG, HTML, text or
    DOT. Linear in the number of binds.

    >>> from letir import parse
    >>> print(graph(parse('''lambda %0:x: float64[3] {
    ...   %1 = sin(%0)  # model.py:3
    ...   %2 = mul(%1, %0)  # model.py:4
    ...   return %2
    ... }''')))
    data flow: 1 parameter, 2 binds, 1 result
    %0:x: float64[3]  -> %1, %2
    model.py:3
      %1 = sin(%0)  -> %2
    model.py:4
      %2 = mul(%1, %0)  -> return
    """
    if cluster not in _CLUSTERS:
        raise LetirError(
            f'graph: cluster must be "line" or "function", found {cluster!r}\n'
            "  leave it out for groups of the same line"
        )
    fn = shown_program("graph", program)
    flow = _Flow.from_program(fn, _CLUSTERS[cluster], is_folded=len(fn.binds) > max_binds)
    return _Drawing(flow).picture(fn)


@define(eq=False)
class _Node:
    """A box: a parameter, a bind, a folded group, or the return. ``lines`` are its texts."""

    lines: list[str]
    title: str  # the tooltip
    kind: str = "box"
    uses: dict[int, None] = field(factory=dict)  # the numbers of the boxes that use it


@define(eq=False)
class _Group:
    """Boxes of one line of code, under its text; a parameter or the return is alone in one."""

    place: str
    code: str
    nodes: list[int] = field(factory=list)
    is_alone: bool = False


@define(eq=False)
class _Flow:
    """The boxes and groups of a program, numbered in its order."""

    nodes: list[_Node] = field(factory=list)
    groups: list[_Group] = field(factory=list)
    maker: dict[Local, int] = field(factory=dict)  # the box of each value
    printer: Printer = field(
        factory=lambda: Printer(bounded=True, bodies=False, sources=False, types=False)
    )

    @classmethod
    def from_program(cls, fn: Lambda, place_of: Callable, is_folded: bool) -> "_Flow":
        """The flow of a program; ``is_folded``: with a box for each group."""
        flow, runs = cls(), _runs_of(fn.binds, place_of)
        for param in fn.params[:_MAX_GROUPS]:
            text = flow.printer.binder(param)
            aval = "" if param.type is None else repr(param.type)
            flow.add_alone([text, aval], f"parameter {text}", "soft", [param])
        for param in fn.params[_MAX_GROUPS:]:
            flow.printer.number(param)
        left_out = len(runs) - _MAX_GROUPS if is_folded else 0
        for i, (place, source, binds) in enumerate(runs):
            if left_out > 0 and _MAX_GROUPS // 2 <= i < _MAX_GROUPS // 2 + left_out:
                if i == _MAX_GROUPS // 2:
                    flow.groups.append(_Group(f"… {left_out:,} groups left out …", ""))
                    flow.add(["…"], "left out", "soft", [])
                flow.note(binds)
                continue
            flow.groups.append(
                _Group(place, source_line_of(source) if place == _line_of(source) else "")
            )
            if is_folded:
                flow.add(*_folded_texts(binds), "box", [])
                flow.note(binds)
            else:
                for bind in binds:
                    flow.add_bind(bind)
        flow.add_alone(["return"], "return", "soft", [])
        flow.use(fn.ret.args)
        return flow

    def add(self, lines: list[str], title: str, kind: str, results: Sequence[Local]) -> None:
        """A new box in the last group."""
        self.groups[-1].nodes.append(len(self.nodes))
        self.maker.update(dict.fromkeys(results, len(self.nodes)))
        self.nodes.append(
            _Node([shorten_text(line, _MAX_LENGTH) for line in lines if line], title, kind)
        )

    def add_alone(self, lines: list[str], title: str, kind: str, results: Sequence[Local]) -> None:
        """A new box in a group of its own."""
        self.groups.append(_Group("", "", is_alone=True))
        self.add(lines, title, kind, results)

    def use(self, args: Sequence) -> None:
        """Edges to the last box from the boxes that make these operands."""
        last = len(self.nodes) - 1
        for arg in args:
            maker = self.maker.get(arg) if type(arg) is Local else None
            if maker is not None and maker != last:
                self.nodes[maker].uses[last] = None

    def add_bind(self, bind: Bind) -> None:
        """The box of a bind."""
        text = shorten_text(self.printer.bind_text(bind, ""), 4 * _MAX_LENGTH)
        constants = [self.printer.arg(arg) for arg in bind.args if type(arg) is not Local]
        names = [self.printer.numbers[b] + (f":{b.name}" if b.name else "") for b in bind.binders]
        avals = list(dict.fromkeys([repr(b.type) for b in bind.binders if b.type is not None]))
        operation = " ".join([bind.op.name, *constants])
        result_text = " ".join([", ".join(names), ", ".join(avals)]).strip()
        self.add([operation, result_text], text, "box", bind.binders)
        self.use(bind.args)

    def note(self, binds: Sequence[Bind]) -> None:
        """Count the values of binds without boxes of their own as values of the last box."""
        last = len(self.nodes) - 1
        for bind in binds:
            self.use(bind.args)
            self.printer.skip(bind)
            self.maker.update(dict.fromkeys(bind.binders, last))

    def numbers_of(self, node: int) -> str:
        """The first name in the title of a box."""
        title = self.nodes[node].title
        return title.partition(" = ")[0].split(":")[0].removeprefix("parameter ")


def _runs_of(binds: Sequence[Bind], place_of: Callable) -> list[tuple[str, Source | None, list]]:
    """(place, source, binds) of each run of binds from one place."""
    runs: list[tuple[str, Source | None, list]] = []
    places: dict[int, str] = {}  # by the id of a source, which many binds share
    for bind in binds:
        place = places.get(id(bind.source))
        if place is None:
            place = places[id(bind.source)] = place_of(bind.source)
        if not runs or runs[-1][0] != place:
            runs.append((place, bind.source, []))
        runs[-1][2].append(bind)
    return runs


def _folded_texts(binds: Sequence[Bind]) -> tuple[list[str], str]:
    """The lines and the title of the box of a whole group."""
    counts = Counter([bind.op.name for bind in binds])
    names = [f"{n} {name}" if n > 1 else name for name, n in counts.items()]
    shown = ", ".join(names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")
    count = f"{len(binds):,} bind{'' if len(binds) == 1 else 's'}"
    return [count, shown], f"{count}: {shown}"


# ---- picture ----


@define(eq=False)
class _Drawing:
    """Draws a flow: a layout of the groups, and one of the boxes inside each group."""

    flow: _Flow
    insides: list[Layout] = field(factory=list)
    tops: list[float] = field(factory=list)  # the height of each group's text
    sizes: list[tuple[float, float]] = field(factory=list)  # of each group
    home: dict[int, int] = field(factory=dict)  # the group of each box
    frames: list[tuple[float, float, float, float]] = field(factory=list)  # of each group
    corners: list[tuple[float, float]] = field(factory=list)  # of the boxes in each group
    centers: dict[int, tuple[float, float]] = field(factory=dict)  # of each box

    def picture(self, fn: Lambda) -> Picture:
        """The picture with its text and its DOT form."""
        counts = (
            (len(fn.params), "parameter"),
            (len(fn.binds), "bind"),
            (len(fn.ret.args), "result"),
        )
        words = ", ".join([f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts])
        title = f"data flow: {words}"
        outside = self.arranged()
        shapes = "".join(self.shapes(outside))
        return Picture(
            title=title,
            body="",
            text="\n".join([title, *_text_lines(self.flow)]),
            shapes=f'<g transform="translate(10 10)">{shapes}</g>',
            width=outside.width + 20,
            height=outside.height + 20,
            about=f"A graph of {len(self.flow.nodes)} boxes in {len(self.flow.groups)} groups.",
            dot=_dot_text(self.flow, title),
        )

    def arranged(self) -> Layout:
        """The layout of the groups, after that of the boxes inside of each."""
        flow, sizes, home = self.flow, [], {}
        for number, group in enumerate(flow.groups):
            home.update(dict.fromkeys(group.nodes, number))
            at = {node: i for i, node in enumerate(group.nodes)}
            inner = [(at[a], at[b]) for a in group.nodes for b in flow.nodes[a].uses if b in at]
            boxes = [_box_size(flow.nodes[node]) for node in group.nodes]
            inside = layered_layout(boxes, inner, between=20.0)
            self.insides.append(inside)
            texts = [text for text in (group.place, group.code) if text]
            self.tops.append(_LINE * len(texts) + (4 if texts else 0))
            pad = 0.0 if group.is_alone else 2 * _PAD
            width = max(inside.width, width_of([shorten_text(text, _MAX_LENGTH) for text in texts]))
            sizes.append((width + pad, inside.height + self.tops[-1] + pad))
        edges = {(home[a], home[b]) for a, node in enumerate(flow.nodes) for b in node.uses}
        params = [n for n, group in enumerate(flow.groups[:-1]) if group.is_alone]
        self.sizes, self.home = sizes, home
        return layered_layout(sizes, [(a, b) for a, b in edges if a != b], sunk=params)

    def shapes(self, outside: Layout) -> Iterator[str]:
        """The elements of the picture: groups, edges above them, texts and boxes above these."""
        texts = []
        for number, group in enumerate(self.flow.groups):
            (x, y), (width, height) = outside.centers[number], self.sizes[number]
            left, top = x - width / 2, y - height / 2
            self.frames.append((left, top, left + width, top + height))
            if not group.is_alone:
                yield rect_shape(left, top, width, height, "group", radius=5)
                for i, text in enumerate([text for text in (group.place, group.code) if text]):
                    line = top + _PAD + _LINE * (i + 0.7)
                    texts.append(
                        text_shape(left + _PAD, line, shorten_text(text, _MAX_LENGTH), "q halo")
                    )
            inside, pad = self.insides[number], 0.0 if group.is_alone else _PAD
            corner = x - inside.width / 2, top + pad + self.tops[number]
            self.corners.append(corner)
            for node, (cx, cy) in zip(group.nodes, inside.centers, strict=True):
                self.centers[node] = corner[0] + cx, corner[1] + cy
        for a, box in enumerate(self.flow.nodes):
            for b in box.uses:
                yield self.edge(a, b, outside)
        yield from texts
        for number, box in enumerate(self.flow.nodes):
            yield _box_shape(number, box, *self.centers[number])

    def edge(self, a: int, b: int, outside: Layout) -> str:
        """The line from one box to another, through the gaps of the layers between."""
        nodes, (home, to_home) = self.flow.nodes, (self.home[a], self.home[b])
        (x, y), (to_x, to_y) = self.centers[a], self.centers[b]
        start = x, y + _box_size(nodes[a])[1] / 2
        end = to_x, to_y - _box_size(nodes[b])[1] / 2
        if home == to_home:
            members, (left, top) = self.flow.groups[home].nodes, self.corners[home]
            between = self.insides[home].ways.get((members.index(a), members.index(b)), ())
            points = [start, *[(left + px, top + py) for px, py in between], end]
        else:
            way = list(outside.ways.get((home, to_home), ()))
            way = [*self.lane(home, start, (way or [end])[0], down=True), *way]
            way += reversed(self.lane(to_home, end, (way or [start])[-1], down=False))
            points = [start, *way, end]
        path = f"M{start[0]:.1f} {start[1]:.1f}"
        for (x0, y0), (x1, y1) in pairwise(points):
            middle = (y0 + y1) / 2
            path += f"C{x0:.1f} {middle:.1f} {x1:.1f} {middle:.1f} {x1:.1f} {y1:.1f}"
        return f'<path class="edge" data-v="n{a}" d="{path}"/>'

    def lane(self, home: int, point: tuple, towards: tuple, *, down: bool) -> list[tuple]:
        """The points beside the boxes of a group by which an edge leaves it, or comes to a box;
        none for a box at that side of the group.
        """
        left, top, right, bottom = self.frames[home]
        inner = self.corners[home][1]
        distance = bottom - _PAD - point[1] if down else point[1] - inner
        if distance < _LINE:
            return []
        x = left + _PAD / 2 if towards[0] < (left + right) / 2 else right - _PAD / 2
        return [(x, point[1] + 16), (x, bottom)] if down else [(x, point[1] - 16), (x, top)]


def _box_size(node: _Node) -> tuple[float, float]:
    """The width and the height of a box."""
    return width_of(node.lines) + 2 * _PAD, _LINE * len(node.lines) + 6


def _box_shape(number: int, node: _Node, x: float, y: float) -> str:
    """A box with its text."""
    width, height = _box_size(node)
    top = y - height / 2
    box = rect_shape(x - width / 2, top, width, height, node.kind, radius=4)
    texts = [
        text_shape(x, top + 3 + _LINE * (i + 0.75), line, "q" if i else "strong", end="middle")
        for i, line in enumerate(node.lines)
    ]
    title = f"<title>{escape_text(node.title)}</title>"
    return f'<g data-v="n{number}">{title}{box}{"".join(texts)}</g>'


# ---- texts ----


def _text_lines(flow: _Flow) -> Iterator[str]:
    """The graph as lines of text: each box with the names of the boxes that use it."""
    for group in flow.groups[:-1]:
        if not group.is_alone:
            yield "  ".join([text for text in (group.place, group.code) if text]) or "no line"
        for number in group.nodes:
            node = flow.nodes[number]
            users = [flow.numbers_of(user) for user in node.uses]
            shown = ", ".join(users[:_MAX_NAMES]) + (", …" if len(users) > _MAX_NAMES else "")
            indent = "" if group.is_alone else "  "
            text = ": ".join(node.lines) if group.is_alone else node.title
            yield f"{indent}{text}  -> {shown or 'unused'}"


def _dot_text(flow: _Flow, title: str) -> str:
    """The graph in Graphviz's language."""
    lines = [f"digraph {_dot_string(title)} {{", "  node [shape=box, fontname=monospace];"]
    for i, group in enumerate(flow.groups):
        boxes = [
            f"n{n} [label={_dot_string(*flow.nodes[n].lines)}, "
            f"tooltip={_dot_string(flow.nodes[n].title)}];"
            for n in group.nodes
        ]
        if group.is_alone:
            lines += [f"  {box}" for box in boxes]
            continue
        lines += [
            f"  subgraph cluster_{i} {{",
            f"    label={_dot_string(group.place, group.code)};",
        ]
        lines += [*[f"    {box}" for box in boxes], "  }"]
    for a, node in enumerate(flow.nodes):
        lines += [f"  n{a} -> n{b};" for b in node.uses]
    return "\n".join([*lines, "}"]) + "\n"


def _dot_string(*lines: str) -> str:
    """Lines of text as a string of Graphviz."""
    texts = [line.replace("\\", "\\\\").replace('"', '\\"') for line in lines if line]
    return '"' + "\\n".join([" ".join(text.split()) for text in texts]) + '"'
