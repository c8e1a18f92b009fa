"""What the site shows beyond its pages: plots of the benchmarks, and files that examples save.

A comment in a page says where it stands, so that nothing of it is seen on a code host:

    <!-- figure programs.svg: caption -->    a picture
    <!-- frame loss.html: title -->          a page in a frame

The plots are drawn from the table that ``python -m benchmarks --write`` writes into
``docs/performance.md``. The other files are those that the Python blocks of the page save.
"""

import contextlib
import html
import re
from collections.abc import Iterator
from pathlib import Path

import make_outputs

FOLDER = "figures"  # in the site
MARK = re.compile(r"^<!-- (figure|frame) ([\w.]+): (.*) -->$", re.MULTILINE)
FIGURE = """\
<figure>
<img src="../{folder}/{file}" alt="{text}">
<figcaption>{text}</figcaption>
</figure>"""
FRAME = """\
<figure>
<iframe src="../{folder}/{file}" title="{text}" width="100%" height="640" loading="lazy"
style="border: 1px solid #8888; border-radius: 4px"></iframe>
<figcaption><a href="../{folder}/{file}">{text}, in a window of its own</a></figcaption>
</figure>"""
TABLE = make_outputs.ROOT / "docs" / "performance.md"
PAIR = r"([\d.]+|-) / ([\d.]+|-)"
PROGRAMS = ": value / value and gradient, to NumPy's value"
COSTS = {  # the beginning of a row: how the plot names it
    "abstract tracing": "record an operation",
    "`run_forward`": "replay an operation",
    "`grad` of a Lambda": "differentiate an operation",
    "`dumps`": "print an operation",
    "`check`": "check an operation",
    "eager: value and gradient": "eager: value and gradient",
}
COLOURS = {  # the palette of Okabe and Ito, which colour-blind readers can tell apart
    "letir": "#0072b2",
    "JAX": "#d55e00",
    "autograd": "#009e73",
    "torch": "#cc79a7",
    "torch.fx": "#e69f00",
}


def with_frames(page: str) -> str:
    """The text of a page with its figures and frames."""

    def shown(match: re.Match) -> str:
        kind, file, text = match.groups()
        form = FIGURE if kind == "figure" else FRAME
        return form.format(folder=FOLDER, file=file, text=html.escape(text))

    return MARK.sub(shown, page)


def marks(page: str) -> list[str]:
    """The files that a page shows."""
    return [file for _, file, _ in MARK.findall(page)]


def write(folder: Path) -> None:
    """Write the files that all pages show into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in make_outputs.PAGES:
        page = (make_outputs.ROOT / name).read_text(encoding="utf-8")
        if marks(page):
            with contextlib.chdir(folder):
                run_blocks(page)
    for name, draw in PLOTS.items():
        draw(folder / name)


def run_blocks(page: str) -> None:
    """Run the Python blocks of a page in the current folder, where they save their files.

    Each block has a file name of its own, as pages show the lines of earlier blocks too.
    """
    names: dict = {"__name__": "example"}
    for i, block in enumerate(make_outputs.BLOCK.finditer(page)):
        make_outputs.printed(block["code"], names, f"block{i}/example.py")


def rows(page: str) -> Iterator[tuple[str, str, str]]:
    """The figure, letir's cell and the cell of the other packages of each row of the table."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and len(cells) == 4:
            yield cells[0], cells[2], cells[3]


def program_ratios(page: str) -> dict[str, dict[str, tuple[float, float]]]:
    """For each program and package the time of the value, and of value and gradient.

    Both are divided by NumPy's time for the value; nan for what was not measured, and 0.01 for all
    that is less.
    """
    found = {}
    for title, letir, others in rows(page):
        name, mark, _ = title.partition(PROGRAMS)
        if mark:
            cells = re.findall(rf"(letir|JAX|autograd) {PAIR}", f"letir {letir}, {others}")
            found[name.replace("`", "")] = {
                package: (number(v), number(g)) for package, v, g in cells
            }
    return found


def number(text: str) -> float:
    """A figure of the table, at least 0.01; nan for a dash."""
    return float("nan") if text == "-" else max(float(text), 0.01)


def cost_ratios(page: str) -> dict[str, dict[str, float]]:
    """For each step the cost in other packages, divided by letir's."""
    found = {}
    for title, letir, others in rows(page):
        for start, name in COSTS.items():
            if title.startswith(start):
                ours = float(re.match(r"[\d.]+", letir)[0])
                cells = re.findall(r"([\w.]+) ([\d.]+) u", others)
                found[name.replace("`", "")] = {
                    package: float(cost) / ours for package, cost in cells
                }
    return found


def draw_programs(path: Path) -> None:
    """Times of array programs, as dots on a logarithmic axis."""
    ratios = program_ratios(TABLE.read_text(encoding="utf-8"))
    figure, panels = new_figure(len(ratios) * 0.3 + 1.6, columns=2)
    for which, (panel, title) in enumerate(
        zip(panels, ("value", "value and gradient"), strict=True)
    ):
        for package, shift in (("letir", -0.2), ("JAX", 0), ("autograd", 0.2)):
            values = [found[package][which] for found in ratios.values()]
            heights = [i + shift for i in range(len(values))]
            panel.plot(values, heights, "o", color=COLOURS[package], label=package)
        panel.axvline(1, color="gray", linewidth=1)
        panel.set(xscale="log", title=title, xlabel="time / NumPy's time for the value")
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(ratios)), list(ratios))
    panels[0].invert_yaxis()
    figure.legend(*panels[1].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    figure.savefig(path, metadata={"Date": None}, transparent=True)


def draw_costs(path: Path) -> None:
    """Costs per operation in other packages, as bars on a logarithmic axis."""
    ratios = cost_ratios(TABLE.read_text(encoding="utf-8"))
    bars = [(step, package, r) for step, found in ratios.items() for package, r in found.items()]
    figure, (panel,) = new_figure(len(bars) * 0.3 + 1.2)
    labels = [f"{step}: {package}" for step, package, _ in bars]
    colours = [COLOURS[package] for _, package, _ in bars]
    drawn = panel.barh(labels, [ratio for *_, ratio in bars], color=colours)
    panel.bar_label(drawn, [f" {ratio:.2g}" for *_, ratio in bars], color="gray")
    panel.axvline(1, color="gray", linewidth=1)
    panel.set(xscale="log", xlabel="cost / letir's cost")
    panel.invert_yaxis()
    figure.savefig(path, metadata={"Date": None}, transparent=True)


def new_figure(height: float, columns: int = 1):
    """A figure with panels in a row, in greys that suit a light and a dark page."""
    import matplotlib
    from matplotlib.figure import Figure

    style = dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor"), "gray")
    style |= {"xtick.color": "gray", "ytick.color": "gray", "axes.titlecolor": "gray"}
    style |= {"svg.hashsalt": "letir", "legend.frameon": False}
    matplotlib.rcParams.update(style)
    figure = Figure(figsize=(9, height), layout="constrained")
    return figure, figure.subplots(1, columns, sharey=True, squeeze=False)[0]


PLOTS = {"programs.svg": draw_programs, "costs.svg": draw_costs}
