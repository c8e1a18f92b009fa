"""Gradient plans of jitted functions on Variables: loaded by the first call that needs one."""

from letir.ast import load_name

_ON_USE = {  # name -> its module
    "create_autodiff_subgraphs": "subgraphs",
    "compile_differentiable": "differentiable_program",
    "finished_subgraphs": "subgraphs",
    "inline_autodiff_subgraphs": "subgraphs",
}


def __getattr__(name: str):
    return load_name(__name__, _ON_USE, name)
