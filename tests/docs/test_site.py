"""The site: its navigation is complete, its figures can be made, its checker finds broken links."""

import importlib.util
import math
import operator
import re
import runpy
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import letir as lt
from tests.each_sample import in_one_test

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
NAMED = re.compile(r"\b(?:lt|letir(?=\.(?:debug|eager|nn|onnx|random|testing|viz)\.))((?:\.\w+)+)")


def module(name: str):
    """A module of ``docs/``, which is not a package."""
    sys.path.insert(0, str(DOCS))
    try:
        spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
        return found
    finally:
        sys.path.remove(str(DOCS))


SITE = module("site_pages")
FIGURES = module("site_figures")
CHECK = module("check_site")
OUTPUTS = runpy.run_path(str(DOCS / "make_outputs.py"))


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def test_every_page_stands_once_in_the_navigation():
    """If this fails: link the page from a list of docs/index.md."""
    sections = SITE.navigation(text_of("docs/index.md"))
    listed = [name for names in sections.values() for name in names]

    assert Counter([SITE.INDEX, *listed, *SITE.below("docs/api")]) == Counter(SITE.pages())


def test_the_navigation_has_a_tree_for_each_heading():
    index = "# x\n\n## Start\n\n- [a](a.md): x\n- [b](../b.md)\n\n## Notebooks\n\nText.\n"
    start, notebooks = SITE.with_navigation(index).split("## Notebooks")

    assert start.startswith("# x\n\n## Start\n\n- [a](a.md): x\n- [b](../b.md)\n")
    assert ":caption: Start\n:hidden:\n\na </docs/a>\nb </b>\n```" in start
    assert "Text.\n" in notebooks and "\n/notebooks/01_first_program\n" in notebooks


def pages_with_names() -> list[str]:
    scripts = "docs/scripting.md"  # where lt.name is an operation
    return [page for page in OUTPUTS["PAGES"] if page != scripts and NAMED.search(text_of(page))]


@in_one_test
@pytest.mark.parametrize("page", pages_with_names())
def test_names_of_letir_on_pages_exist(page):
    missing = [path for path in set(NAMED.findall(text_of(page))) if not exists(path)]

    assert not missing


def exists(path: str) -> bool:
    """Whether letir, or the value of one of its names, has this attribute."""
    try:
        operator.attrgetter(path.strip("."))(lt)
    except AttributeError:
        return False
    return True


def shown_files() -> list[tuple[str, str]]:
    return [(page, file) for page in OUTPUTS["PAGES"] for file in FIGURES.marks(text_of(page))]


@pytest.mark.parametrize(("page", "file"), shown_files())
def test_what_a_page_shows_is_saved_by_one_of_its_blocks_or_plotted(page, file):
    blocks = "".join(block["code"] for block in OUTPUTS["BLOCK"].finditer(text_of(page)))

    assert f'"{file}"' in blocks or file in FIGURES.PLOTS


def test_a_mark_becomes_a_figure_or_a_frame():
    page = (
        "text\n\n<!-- frame a.html: A & B -->\n\n<!-- figure b.svg: B -->\n\n<!-- a comment -->\n"
    )
    shown = FIGURES.with_frames(page)

    assert '<iframe src="../figures/a.html" title="A &amp; B"' in shown
    assert '<img src="../figures/b.svg" alt="B">' in shown
    assert "<!-- a comment -->" in shown


def test_saved_views_show_the_lines_of_earlier_blocks(tmp_path, monkeypatch):
    define = "import numpy as np\nimport letir as lt\ndef f(x):\n    return np.sin(x)\n"
    show = "\n\n\n# not f\nlt.viz.save_page(lt.trace(f, 1.0), 'f.html')\n"
    monkeypatch.chdir(tmp_path)

    FIGURES.run_blocks(f"```python\n{define}```\n\n```python\n{show}```\n")

    page = Path("f.html").read_text(encoding="utf-8")
    assert "example.py:4 <code>np.sin(x)</code>" in page


def test_the_plots_find_their_rows_in_the_table_of_the_benchmarks():
    """If this fails, benchmarks/rows.py writes rows that docs/site_figures.py does not know."""
    table = text_of("docs/performance.md")
    programs, costs = FIGURES.program_ratios(table), FIGURES.cost_ratios(table)

    assert len(programs) == table.count(FIGURES.PROGRAMS) > 15
    assert all(found.keys() == {"letir", "JAX", "autograd"} for found in programs.values())
    assert all(not math.isnan(found["letir"][0]) for found in programs.values())
    assert set(FIGURES.COSTS.values()) == {step for step, found in costs.items() if found}
    assert {package for found in costs.values() for package in found} <= set(FIGURES.COLOURS)


def test_a_ratio_is_a_quotient_of_two_cells_of_a_row():
    table = "| `check`, per bind | 5 u | 3.0 u | torch.fx 6 u, JAX (not done in 60 s) |"

    assert {"check an operation": {"torch.fx": 2.0}} == FIGURES.cost_ratios(table)


def test_links_that_lead_nowhere_are_found(tmp_path):
    (tmp_path / "a.html").write_text('<a id="x"></a><a href="b.html#y"></a><a href="#x"></a>')
    (tmp_path / "b.html").write_text('<a href="a.html#z"></a><img src="c.svg"><a href="https://d">')

    assert ["a.html: b.html#y", "b.html: a.html#z", "b.html: c.svg"] == list(
        CHECK.broken_links(tmp_path)
    )


def test_the_text_of_programs_is_coloured():
    pytest.importorskip("pygments")
    program = str(lt.parse("lambda %0: float64[n] { %1: float64[n] = sin(%0); return %1 }"))
    tokens = list(module("site_lexer").ProgramLexer().get_tokens(program))

    assert program.strip() == "".join(text for _, text in tokens).strip()
    kinds = {text: str(kind) for kind, text in tokens}
    assert "Token.Keyword" == kinds["lambda"] == kinds["return"]
    assert "Token.Keyword.Type" == kinds["float64"]
    assert "Token.Name.Function" == kinds["sin"]


@pytest.mark.slow
def test_the_site_is_built_without_warnings(tmp_path):
    pytest.importorskip("myst_nb", reason="install the extra 'docs'")
    pytest.importorskip("furo", reason="install the extra 'docs'")
    command = ["-m", "sphinx", "-q", "-W", "--keep-going", "-n", "-c", "docs", "-d"]

    subprocess.run(
        [sys.executable, *command, tmp_path / "cache", ".", tmp_path / "site"], cwd=ROOT, check=True
    )

    assert not list(CHECK.broken_links(tmp_path / "site"))
    assert (tmp_path / "site" / "docs" / "tutorial.html").exists()
