"""Gradient plans of jitted functions on Variables: loaded by the first call that needs one."""

from letir.ast import load_module

_ON_USE = {  # name -> its module
    "create_autodiff_subgraphs": "subgraphs",
    "compile_differentiable": "differentiable_program",
    "finished_subgraphs": "subgraphs",
    "inline_autodiff_subgraphs": "subgraphs",
}


def __getattr__(name: str):
    if name not in _ON_USE:
        raise AttributeError(f"module 'letir.executor.autodiff' has no attribute {name!r}")
    return getattr(load_module(f"letir.executor.autodiff.{_ON_USE[name]}"), name)
