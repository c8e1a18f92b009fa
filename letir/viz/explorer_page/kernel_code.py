"""``kernel_content``: the kernels of a program's plan with their loops, as JSON."""

from typing import Any

from letir.ast.terms import Lambda
from letir.errors import LetirError
from letir.executor.compiled import compile as compile_program
from letir.executor.compiled import kernels_setting
from letir.executor.default_pipeline import has_compiler

_MAX_BINDS = 5_000  # of a program that is compiled for its page
_MAX_KERNELS = 60
_MAX_TEXT = 20_000  # characters of a kernel


def kernel_content(fn: Lambda) -> dict[str, Any]:
    """The kernels of the plan that ``compile`` makes of a program.

    A kernel is its name, its operations, its bytes, the user's lines and its loops. ``reason``: why
    there is none.
    """
    if not has_compiler():
        reason = "llvmlite is not installed: NumPy computes all operations."
        return {"kernels": [], "reason": reason}
    if kernels_setting() == "off":
        return {"kernels": [], "reason": "Kernels are switched off by LETIR_KERNELS."}
    if len(fn) > _MAX_BINDS:
        return {"kernels": [], "reason": f"Left out: the program has {len(fn):,} binds."}
    try:
        kernels = compile_program(fn, kernels="on").kernels
    except LetirError as error:
        return {"kernels": [], "reason": str(error).partition("\n")[0]}
    none = "The plan has no kernels: NumPy computes all operations, which is faster here."
    omitted = len(kernels) - _MAX_KERNELS
    return {
        "kernels": [
            {
                "name": kernel.name,
                "about": str(kernel),
                "bytes": kernel.bytes,
                "lines": list(kernel.lines[:20]),
                "loops": kernel.source[:_MAX_TEXT],
            }
            for kernel in kernels[:_MAX_KERNELS]
        ],
        "reason": "" if kernels else none,
        "left": max(omitted, 0),
    }
