"""The notebooks run and show what is stored in them."""

import runpy
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="install the extra 'test'")
pytest.importorskip("nbclient", reason="install the extra 'test'")

MAKE = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "make_notebooks.py"))


def shown(notebook) -> list[str]:
    """What each cell shows, as text."""
    return ["".join(map(text_of, cell.get("outputs", ()))) for cell in notebook.cells]


def text_of(output) -> str:
    return output.text if output.output_type == "stream" else output.data["text/plain"]


@pytest.mark.filterwarnings("ignore")  # of the Jupyter packages
@pytest.mark.parametrize("path", MAKE["PATHS"], ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_stored_in_it(path):
    """If this fails for a good reason: python docs/make_notebooks.py."""
    executed = MAKE["executed"](path)

    assert shown(executed) == shown(nbformat.read(path, nbformat.NO_CONVERT))
