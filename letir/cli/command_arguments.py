"""The arguments of commands that name functions, arrays, numbers and types."""

import contextlib
import difflib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from letir.ast.text.literals import TYPE, parse_type
from letir.ast.types import ShapeDtype
from letir.errors import LetirError
from letir.tracing.checks.user_functions import parameters_text

FORMS = "write a .npy file or a number"
_TRACED_FORMS = f"{FORMS}, or a type such as 'float64[n, 3]' for an argument without a value"
_TYPE_FORM = "write a dtype and a size for each axis, as in 'float64[n, 3]'"
_MAX_NAMES = 12  # the most functions that an error lists
_TYPE = re.compile(TYPE)
_LIKE_A_TYPE = re.compile(r"\s*[a-z]+\d*\*?\s*\[.*")  # also without its end, or malformed


def load_function(place: str) -> Callable:
    """The function named by ``file.py:name`` or ``module:name``; the module is run."""
    file, _, name = place.rpartition(":")
    module = _module_in(place, file)
    result = getattr(module, name, None)
    if not callable(result):
        names = _function_names(module)
        if len(names) > _MAX_NAMES:
            names = [*difflib.get_close_matches(name, names, _MAX_NAMES, 0), "others"]
        raise LetirError(
            f"{file} has no function {name!r}; it has {', '.join(names) or 'none'}\n"
            "  name one of them"
        )
    return result


def _function_names(module: ModuleType) -> list[str]:
    """The public names of the functions that a module defines."""
    members = inspect.getmembers(module, lambda f: callable(f) and not isinstance(f, type))
    own = [name for name, f in members if getattr(f, "__module__", None) == module.__name__]
    return [name for name in own if not name.startswith("_")]


def traced_arguments(function: Callable, texts: Sequence[str]) -> list:
    """The arguments that ``--arg`` gives to a call of ``function``, one for each parameter."""
    args = list(map(parse_traced_argument, texts))
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # functions in C have no signature
        return args
    try:
        signature.bind(*args)
    except TypeError as reason:
        name = getattr(function, "__name__", type(function).__name__)
        raise LetirError(
            f"the function {name}{parameters_text(signature)} is called with "
            f"({', '.join(texts)}): {reason}\n"
            "  write --arg once for each of its parameters, in their order, as in "
            "--arg 'float64[n, 3]' --arg x.npy"
        ) from None
    return args


def _module_in(place: str, file: str) -> ModuleType:
    """The module in a Python file, or of this name."""
    path = Path(file)
    if path.suffix != ".py":
        return _module_named(place, file)
    if not path.exists():
        raise FileNotFoundError(2, os.strerror(2), file)
    sys.path.insert(0, str(path.parent.resolve()))  # as Python does for a script
    return _run_module(importlib.util.spec_from_file_location(path.stem, path))


def _module_named(place: str, name: str) -> ModuleType:
    """The module that an import of this name would find; the current folder is searched too."""
    if name in sys.modules:
        return sys.modules[name]
    sys.path.insert(0, os.getcwd())
    spec = None
    if all(part.isidentifier() for part in name.split(".")):
        with contextlib.suppress(ModuleNotFoundError):  # of a package that it names
            spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        missing = f", and there is no module {name!r}" if name and name != place else ""
        raise LetirError(
            f"{place}: a Python file and a function are expected{missing}\n"
            "  name a file and a function in it, as in model.py:loss, or a module and a function"
        )
    return _run_module(spec)


def _run_module(spec: ModuleSpec) -> ModuleType:
    """The module of a spec, imported."""
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # before it runs: dataclasses and pickle look there
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        error.filename = error.filename or spec.origin  # missing for some kinds of text
        raise
    except ValueError as error:
        if "null bytes" in str(error):  # before Python 3.11.4
            raise SyntaxError(str(error), (spec.origin, None, None, None)) from None
        raise
    except SystemExit as error:
        raise LetirError(
            f"{spec.origin} ends the process while it is imported, by exit({error.code!r})\n"
            '  write what a script does below: if __name__ == "__main__":'
        ) from None
    return module


def parse_traced_argument(text: str) -> Any:
    """The array in a .npy file, a Python number, or a type, whose named sizes are symbolic."""
    if not _TYPE.fullmatch(text.strip()):
        if _LIKE_A_TYPE.fullmatch(text) and not os.path.exists(text):
            raise LetirError(f"--arg {text!r} is not a type\n  {_TYPE_FORM}")
        return parse_argument(text, _TRACED_FORMS)
    try:
        aval = parse_type(text.strip())
        return ShapeDtype(aval.shape, aval.dtype, aval.weak)
    except (LetirError, ValueError) as error:
        raise LetirError(
            f"--arg {text!r} is not a type: {str(error).splitlines()[0]}\n  {_TYPE_FORM}"
        ) from None


def parse_argument(text: str, forms: str = FORMS) -> Any:
    """The array in a .npy file, or a Python number. ``forms``: the forms that an error names."""
    for number in (int, float, complex):  # text that reads as a number is not a file name
        try:
            return number(text)
        except ValueError:
            continue
    if not os.path.exists(text):
        raise LetirError(f"--arg {text!r}: No such file or directory\n  {forms}")
    with open(text, "rb") as stream:
        try:
            # mapped first: its size is compared with the header's before memory is taken
            mapped = np.lib.format.open_memmap(text, mode="r") if os.path.isfile(text) else None
            del mapped
            return np.lib.format.read_array(stream, allow_pickle=False)
        except Exception as error:  # the header is Python, which NumPy parses
            raise LetirError(
                f"{text} is not a .npy file of numbers: {error}\n"
                "  numpy.save(path, array) writes one"
            ) from None


def size_argument(text: str) -> tuple[str, int]:
    """The name and the number in ``name=number``."""
    name, _, number = text.rpartition("=")
    if not name or not number.isdecimal():
        raise LetirError(f"--size {text}: write a name and a number, as in batch=8")
    return name, int(number)
