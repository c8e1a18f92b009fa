"""Programs, memory and time as pictures: for notebooks, for files and for terminals.

    graph(program)            the data flow, grouped by the lines of your code
    save_page(value, path)    what a notebook shows of a value, as one HTML file

A name loads its module on first use.
"""

from letir.ast import load_module

_HOME = {
    "graph": "letir.viz.data_flow",
    "save_page": "letir.viz.view_page",
}
__all__ = ["graph", "save_page"]


def __getattr__(name: str):
    if name in _HOME:
        return getattr(load_module(_HOME[name]), name)
    raise AttributeError(f"module 'letir.viz' has no attribute {name!r}")
