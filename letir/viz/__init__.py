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

from typing import TYPE_CHECKING

from letir.ast import load_name

if TYPE_CHECKING:  # for editors
    from letir.viz.data_flow import graph
    from letir.viz.explorer_page.explorer import explorer
    from letir.viz.memory_chart import live_ranges, memory
    from letir.viz.pass_steps import diff
    from letir.viz.profile_chart import profile
    from letir.viz.roofline_chart import roofline
    from letir.viz.view_page import save_page

_HOME = {
    "diff": "pass_steps",
    "explorer": "explorer_page.explorer",
    "graph": "data_flow",
    "live_ranges": "memory_chart",
    "memory": "memory_chart",
    "profile": "profile_chart",
    "roofline": "roofline_chart",
    "save_page": "view_page",
}
__all__ = ["diff", "explorer", "graph", "live_ranges", "memory", "profile", "roofline", "save_page"]


def __getattr__(name: str):
    return load_name(__name__, _HOME, name)


def __dir__() -> list[str]:
    return __all__
