"""The notebooks run and show what is stored in them."""

import re
import runpy
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="install the extra 'test'")
pytest.importorskip("nbclient", reason="install the extra 'test'")
jupyter_client = pytest.importorskip("jupyter_client", reason="install the extra 'test'")

MAKE = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "make_notebooks.py"))


# NumPy's vector functions differ in the last digits from one family of processors to another
ALL_DIGITS = re.compile(r"-?\d+\.\d{13,}(?:e-?\d+)?")


def shown(notebook) -> list[str]:
    """What each cell shows, as text, unless it is tagged as different in each run.

    Floating-point numbers that are printed in full are rounded to 12 significant digits.
    """
    cells = [cell for cell in notebook.cells if "varies" not in cell.metadata.get("tags", ())]
    texts = ["".join(map(text_of, cell.get("outputs", ()))) for cell in cells]
    return [ALL_DIGITS.sub(lambda number: f"{float(number[0]):.12g}", text) for text in texts]


def cases() -> list:
    """All notebooks; those that compare letir with others, or compute on much data, take long."""
    slow = [pytest.mark.slow]
    return [
        pytest.param(path, id=path.stem, marks=slow if path.stem.startswith(("10_", "11_")) else [])
        for path in MAKE["PATHS"]
    ]


def text_of(output) -> str:
    return output.text if output.output_type == "stream" else output.data["text/plain"]


@pytest.fixture(scope="module")
def kernel():
    """A process for all notebooks: to start one and import Matplotlib takes as long as most run."""
    manager = jupyter_client.KernelManager()
    yield manager
    if manager.has_kernel:
        manager.shutdown_kernel(now=True)


@pytest.mark.filterwarnings("ignore")  # of the Jupyter packages
@pytest.mark.parametrize("path", cases())
def test_the_stored_results_of_a_notebook_are_those_of_a_run(path, kernel):
    """If this fails for a good reason: python docs/make_notebooks.py."""
    if path.stem.startswith("10_"):
        for peer in ("jax", "torch", "autograd"):
            pytest.importorskip(peer)
    executed = MAKE["executed"](path, kernel)

    assert shown(executed) == shown(nbformat.read(path, nbformat.NO_CONVERT))


@pytest.mark.parametrize("path", MAKE["PATHS"], ids=lambda path: path.stem)
def test_a_notebook_is_small_and_has_run_from_top_to_bottom(path):
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]

    assert path.stat().st_size < 500_000
    assert counts == [*range(1, len(counts) + 1)]
    assert notebook.cells[0].cell_type == "markdown"
    assert dict(notebook.metadata.language_info) == {"name": "python"}
    assert not [cell for cell in notebook.cells if "execution" in cell.metadata]


@pytest.mark.parametrize("path", MAKE["PATHS"][:10], ids=lambda path: path.stem)
def test_a_notebook_has_pictures(path):
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]

    assert [x for x in outputs if {"image/png", "image/svg+xml"} & x.get("data", {}).keys()]


@pytest.mark.parametrize("path", MAKE["PATHS"], ids=lambda path: path.stem)
def test_formulas_are_written_as_code(path):
    """The site would need a script from the network to set them."""
    notebook = nbformat.read(path, nbformat.NO_CONVERT)

    assert not [c.source for c in notebook.cells if c.cell_type == "markdown" and "$" in c.source]
