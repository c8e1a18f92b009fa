"""Programs, memory and time as pictures: for notebooks, for files and for terminals.

    diff(program, *passes)    a program before and after passes, side by side
    explorer(program, *args)  a page to search a program, step through it and run it
    graph(program)            the data flow, grouped by the lines of your code
    live_ranges(program)      when each array of a call exists
    memory(program)           the memory of a call over its steps, and its peak
    profile(f, *args)         where the time and the bytes of a call go, by line
    roofline(f, *args)        how close each kernel comes to the limits of the machine
    save_page(value, path)    what a notebook shows of a value, as one HTML file

A name loads its module on first use.
"""

from letir.ast import load_module

_HOME = {
    "diff": "letir.viz.pass_steps",
    "explorer": "letir.viz.explorer_page.explorer",
    "graph": "letir.viz.data_flow",
    "live_ranges": "letir.viz.memory_chart",
    "memory": "letir.viz.memory_chart",
    "profile": "letir.viz.profile_chart",
    "roofline": "letir.viz.roofline_chart",
    "save_page": "letir.viz.view_page",
}
__all__ = ["diff", "explorer", "graph", "live_ranges", "memory", "profile", "roofline", "save_page"]


def __getattr__(name: str):
    if name in _HOME:
        return getattr(load_module(_HOME[name]), name)
    raise AttributeError(f"module 'letir.viz' has no attribute {name!r}")
