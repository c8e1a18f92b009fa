"""``save`` and ``load`` programs and Gradients; loading a file never runs code from it."""

import os
from collections.abc import Iterable
from typing import Any

from letir.ad.gradient_program import Gradient
from letir.ad.gradient_validation import check_gradient
from letir.ast import entry_point
from letir.ast.terms import Lambda, Local, Ret
from letir.ast.text.archive import MAX_BYTES, MAX_TEXT_BYTES
from letir.ast.text.files import load_programs, save_programs
from letir.errors import DTypeError, LetirError, ParseError

NUMBERS = (  # the fields of a Gradient that connect its two programs
    "f_real_outputs",
    "df_input_vjps",
    "df_input_captured_inputs",
    "df_input_captured_outputs",
    "df_output_vjps",
)


@entry_point
def save(program: Lambda | Gradient, path: str | os.PathLike) -> None:
    """Write a program or a Gradient to a file that ``load`` reads.

    The file is a zip with the text and the array constants as .npy. An existing file is replaced
    atomically.

    >>> import numpy as np, tempfile
    >>> from letir import trace
    >>> path = tempfile.mkdtemp() + "/f.letir"
    >>> f = trace(np.exp, np.ones(2))
    >>> save(f, path)
    >>> load(path) == f
    True
    """
    if isinstance(program, Lambda):
        save_programs(path, {"program": program})
    elif isinstance(program, Gradient):
        results = tuple(Local() for _ in range(program.f_real_outputs))
        # a file holds programs and numbers only: an empty program carries the pytree of results
        nesting = Lambda(results, (), Ret(results), None, program.out_tree)
        about = {name: getattr(program, name) for name in NUMBERS}
        save_programs(path, {"f": program.f, "df": program.df, "results": nesting}, about)
    else:
        remedy = "write letir.save(program, path); letir.trace(f, *args) records a program"
        if isinstance(getattr(program, "program", None), Lambda):  # a compiled program
            remedy = "save its program, x.program, and compile that when it is loaded"
        raise DTypeError(
            f"save: expected a Lambda or a Gradient, found {type(program).__name__}\n  {remedy}"
        )


@entry_point
def load(
    path: str | os.PathLike,
    *,
    max_bytes: int = MAX_BYTES,
    max_text_bytes: int = MAX_TEXT_BYTES,
    classes: Iterable[type] = (),
) -> Lambda | Gradient:
    """The program or Gradient in a file that ``save`` has written. Safe on untrusted files: nothing
    is imported or run, and the program is checked as by ``check``.

    ``max_bytes``, ``max_text_bytes``: limits of the unpacked file, and of the texts in it; a file
    that unpacks to more than a hundred times its size is always refused. ``classes``: trusted
    dataclasses, attrs classes and named tuples, of which the program makes its results; results of
    other classes that the file names are plain named tuples.

    Raises ParseError if the file was not written by ``save``, is damaged or larger than the limits,
    needs operations that are not registered or newer ones, or if ``check`` refuses the program.

    >>> import tempfile
    >>> from letir import parse
    >>> f = parse("lambda %0 { %1 = exp(%0); return %1 }")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(f, f"{folder}/f.letir")
    ...     load(f"{folder}/f.letir") == f
    True
    """
    path = os.fspath(path)  # an int would be taken for an open file
    programs, about = load_programs(
        path, max_bytes=max_bytes, max_text_bytes=max_text_bytes, classes=classes
    )
    if programs.keys() == {"program"}:
        return programs["program"]
    # checked before Gradient(**numbers): these names come from the file
    if programs.keys() != {"f", "df", "results"} or about.keys() != set(NUMBERS):
        raise ParseError(
            f"{path} holds neither a program nor a Gradient, but {', '.join(programs) or 'nothing'}"
            "\n  use load_programs of letir.ast.text.files"
        )
    numbers: dict[str, Any] = {
        name: tuple(value) if type(value) is list else value for name, value in about.items()
    }
    out_tree = programs["results"].out_tree
    result = Gradient(programs["f"], programs["df"], out_tree=out_tree, **numbers)
    try:
        return check_gradient(result)
    except LetirError as error:
        raise ParseError(f"{path} holds a Gradient whose parts do not fit: {error}") from None
