"""The notebooks run, in a few seconds, and print what is stored in them."""

import time
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat", reason="install the extra 'test'")
nbclient = pytest.importorskip("nbclient", reason="install the extra 'test'")

FOLDER = Path(__file__).parent.parent / "notebooks"
SECONDS = 20


def texts(notebook) -> list[str]:
    """What each cell shows, as text."""
    return ["".join(map(text_of, cell.get("outputs", ()))) for cell in notebook.cells]


def text_of(output) -> str:
    return output.text if output.output_type == "stream" else output.data["text/plain"]


@pytest.mark.filterwarnings("ignore")  # of the Jupyter packages
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_shows_what_is_stored_in_it(path):
    """If this fails for a good reason: make notebooks."""
    stored = nbformat.read(path, nbformat.NO_CONVERT)
    executed = nbformat.read(path, nbformat.NO_CONVERT)
    start = time.perf_counter()

    nbclient.NotebookClient(
        executed, timeout=SECONDS, resources={"metadata": {"path": FOLDER}}
    ).execute()

    assert texts(executed) == texts(stored)
    assert time.perf_counter() - start < SECONDS
