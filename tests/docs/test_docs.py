"""The pages are correct: their examples run, their outputs are real, their links resolve."""

import inspect
import json
import logging
import math
import operator
import re
import runpy
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import letir as lt
import letir.numpy as lnp
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.cli.command_line import build_parser
from letir.ops import load_all
from tests.each_sample import each_of

ROOT = Path(__file__).parents[2]
OUTPUTS = runpy.run_path(str(ROOT / "docs" / "make_outputs.py"))
OPERATIONS = runpy.run_path(str(ROOT / "docs" / "make_operations.py"))
API = runpy.run_path(str(ROOT / "docs" / "make_api.py"))
TABLE = np.arange(5.0)
PAGES = [*OUTPUTS["PAGES"], "CHANGELOG.md", "CONTRIBUTING.md"]
LINKING = [
    str(path.relative_to(ROOT))
    for pattern in ("docs/api/*.md", "letir/datasets/*.md", "notebooks/*.ipynb")
    for path in sorted(ROOT.glob(pattern))
]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def idioms(column: int) -> list[str]:
    """The code in a column of the table of what cannot be recorded."""
    lines = text_of("docs/guards.md").split("| instead of |")[1].split("\n\n")[0].splitlines()[2:]
    cells = [re.split(r"(?<!\\) \| ", line.strip("| "))[column] for line in lines]
    return [code for cell in cells for code in re.findall(r"`([^`]+)`", cell) if "..." not in code]


def recorded(code: str) -> lt.Lambda:
    """``code`` recorded with a traced vector, a traced number and traced integers."""

    def run(t, s, i):
        names = {"np": np, "lnp": lnp, "lt": lt, "math": math, "t": t, "s": s, "i": i}
        names["TABLE"] = TABLE
        exec(code, names)
        return names["t"]

    return lt.trace(run, np.array([0.5, -1.0, 2.0]), 0.5, np.array([0, 2, 2]))


@pytest.fixture
def log_level():
    """The level of the logger that an example sets, restored after the test."""
    logger = logging.getLogger("letir.plan")
    level = logger.level
    yield
    logger.setLevel(level)


@pytest.mark.usefixtures("log_level")
@pytest.mark.parametrize("page", OUTPUTS["PAGES"])
def test_examples_print_what_the_page_says(page):
    """If this fails for a good reason: python docs/make_outputs.py."""
    assert OUTPUTS["refreshed"](text_of(page)) == text_of(page)


def test_the_page_of_operations_is_up_to_date():
    """If this fails: python docs/make_operations.py."""
    assert OPERATIONS["page"]() == text_of("docs/operations.md")


def test_the_page_on_numpy_is_up_to_date():
    """If this fails: python docs/make_numpy.py."""
    code = "import runpy; print(runpy.run_path('docs/make_numpy.py')['page'](), end='')"

    command = [sys.executable, "-W", "ignore", "-c", code]

    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)

    assert made.stdout == text_of("docs/numpy.md")


def test_the_reference_of_public_names_is_up_to_date():
    """If this fails: python docs/make_api.py."""
    pages = API["pages"]()

    assert set(API["FOLDER"].glob("*.md")) == set(pages) - {API["INDEX"]}
    for path, text in pages.items():
        assert text == path.read_text(encoding="utf-8"), path.name


def public_names() -> list[str]:
    """The names of letir, and those in its namespaces."""
    spaces = ["extend", *API["NAMESPACES"]]
    return [
        *dir(lt),
        *(f"{space}.{n}" for space in spaces for n in API["namespace"](space).__all__),
    ]


def test_every_namespace_is_described():
    """``numpy`` and ``scipy`` are NumPy's and SciPy's, on pages of their own."""
    spaces = {name for name in dir(lt) if isinstance(getattr(lt, name), ModuleType)}

    assert spaces - {"extend", "numpy", "scipy"} <= set(API["NAMESPACES"])


@each_of(public_names())
def test_a_public_function_or_class_has_an_example(name):
    """Doctest runs it. NumPy documents its own functions."""
    value = operator.attrgetter(name)(lt)

    if callable(value) and not (isinstance(value, Primitive) and value.numpy):
        assert ">>> " in API["documentation"](value)


def test_help_of_an_operation_has_its_signature_and_its_docstring():
    shown = inspect.getdoc(lt.nn.dropout)

    assert shown.startswith("dropout(x, key=None, *, rate=0.5, train=True")
    assert "with probability ``rate``" in shown
    assert inspect.getdoc(Primitive).startswith("One operation")
    assert inspect.getdoc(lt.nn.tanh).startswith("tanh(x, /)\n\nNumPy's ``tanh``")
    mine = lt.primitive("docs.mine", lambda xp, x, by=None: x, lambda x, by=None: x)
    assert inspect.getdoc(mine).startswith("docs.mine(x, by=None)\n\nAn operation that")
    assert all(record.__doc__.startswith(f"{name}(") for name, record in PRIMITIVES.items())


def test_every_operation_is_on_its_page():
    load_all()
    page = text_of("docs/operations.md")

    assert not [name for name in PRIMITIVES if "." not in name and f"\n| `{name}` |" not in page]


@pytest.mark.parametrize("code", idioms(0))
def test_idioms_that_cannot_be_recorded_are_errors(code):
    with pytest.raises((lt.LetirError, ValueError)):
        recorded(code)


@pytest.mark.parametrize("code", idioms(2))
def test_the_replacement_of_each_idiom_is_recorded(code):
    lt.check(recorded(code))


@pytest.mark.parametrize("page", [*PAGES, *LINKING])
def test_links_lead_to_files_and_headings(page):
    text = prose_of_notebook(page) if page.endswith(".ipynb") else text_of(page)
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)
    for target, anchor in LINK.findall(prose):
        path = (ROOT / page).parent / target if target else ROOT / page
        assert path.exists(), target
        if anchor:
            assert anchor in anchors(path.read_text(encoding="utf-8"))


def prose_of_notebook(page: str) -> str:
    cells = json.loads(text_of(page))["cells"]
    return "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def anchors(page: str) -> Iterator[str]:
    """The anchors that renderers of Markdown give to the headings of a page."""
    seen = Counter()
    for heading in re.findall(r"^#+ (.*)$", page, re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        yield f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor
        seen[anchor] += 1


def test_the_readme_names_every_command():
    commands = build_parser()._subparsers._group_actions[0].choices

    assert not [name for name in commands if name not in text_of("README.md")]


def test_the_page_on_debugging_lists_every_environment_variable():
    code = "".join(path.read_text() for path in (ROOT / "letir").rglob("*.py"))
    read = set(re.findall(r'environ\.get\("(LETIR_\w+)"', code))
    listed = set(re.findall(r"^\| `(LETIR_\w+)=", text_of("docs/debugging.md"), re.MULTILINE))

    assert read | {"LETIR_NUM_THREADS"} == listed


def test_an_outdated_output_on_a_page_is_corrected():
    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n"

    assert OUTPUTS["refreshed"](page) == page.replace("3", "2")


def test_a_block_without_a_place_for_its_output_is_an_error():
    with pytest.raises(ValueError, match="no text block follows"):
        OUTPUTS["refreshed"]("```python\nprint(1)\n```\n")
