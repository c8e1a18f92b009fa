"""Run the notebooks and store what they show, without times and versions.

python docs/make_notebooks.py
python docs/make_notebooks.py notebooks/03_language_model.ipynb

A cell with the tag "varies" shows times, or what depends on the machine: no test compares it. Number
10 needs the packages of the extra "bench" and is run only if it is named.
"""

import os
import sys
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
PATHS = tuple(sorted(FOLDER.glob("*.ipynb")))
SECONDS = 600  # after which a cell is taken to hang
# what an earlier notebook of the same process has changed
_RESET = """
%reset -f
__spec__ = None  # multiprocessing reads it, and %reset removes it
import sys
if "matplotlib.pyplot" in sys.modules:
    sys.modules["matplotlib.pyplot"].rcdefaults()
del sys
get_ipython().execution_count = 1
"""


def executed(path: Path, kernel=None) -> nbformat.NotebookNode:
    """The notebook with what it shows now, in a process of its own or in the one of a ``kernel``.

    ``kernel``: a kernel manager of Jupyter, whose process keeps the modules that it has imported.
    """
    notebook = nbformat.read(path, nbformat.NO_CONVERT)
    if kernel is not None:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(_RESET))
    client = nbclient.NotebookClient(
        notebook,
        km=kernel,
        timeout=SECONDS,
        startup_timeout=SECONDS,
        record_timing=False,
        coalesce_streams=True,
        resources={"metadata": {"path": FOLDER}},
    )
    # without lines of progress, which a busy machine would show in other cells
    client.execute(env={**os.environ, "LETIR_PROGRESS": "0"})
    if kernel is not None:
        del notebook.cells[0]
        client.kc.stop_channels()
    notebook.metadata.language_info = {"name": "python"}
    return notebook


if __name__ == "__main__":
    named = [Path(name).resolve() for name in sys.argv[1:]]
    for notebook_path in named or [path for path in PATHS if not path.stem.startswith("10_")]:
        nbformat.write(executed(notebook_path), notebook_path)
