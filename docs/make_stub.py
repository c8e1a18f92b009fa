"""Write ``letir/__init__.pyi`` and ``letir/nn/__init__.pyi``, the public names for editors and type
checkers.

python docs/make_stub.py
"""

import inspect
import textwrap
from pathlib import Path

import letir
from letir import nn

PAGE = Path(letir.__file__).with_suffix(".pyi")
NN_PAGE = Path(nn.__file__).with_suffix(".pyi")
WIDTH = 100
HEAD = """\
# Written by docs/make_stub.py from the table in __init__.py, which loads names on first use.
"""
NN_HEAD = """\
# Written by docs/make_stub.py: most functions are records, whose signatures editors cannot see.

from typing import Any

"""


def stub() -> str:
    """The stub of letir: each name imported from its module, by theme."""
    parts = [HEAD]
    parts += [f"from letir import {name} as {name}" for name in sorted(letir._NAMESPACES)]
    for theme, modules in letir._PUBLIC.items():
        parts += ["", f"# {theme.lower()}"]
        for module, names in sorted(modules.items()):
            parts += [f"from letir.{module} import {name} as {name}" for name in sorted(names)]
    names = "".join(f'    "{name}",\n' for name in letir.__all__)
    return "\n".join([*parts, "", "__version__: str", f"__all__ = [\n{names}]\n"])


def nn_stub() -> str:
    """The stub of letir.nn: functions imported from their modules, records as functions."""
    values = {name: getattr(nn, name) for name in nn.__all__}
    functions = [(f.__module__, name) for name, f in values.items() if inspect.isfunction(f)]
    modules = [("letir.nn", name) for name, f in values.items() if inspect.ismodule(f)]
    imports = [f"from {at} import {name} as {name}\n" for at, name in sorted(modules + functions)]
    imported = {name for _, name in modules + functions}
    definitions = [_definition(name, f) for name, f in values.items() if name not in imported]
    names = "".join(f'    "{name}",\n' for name in nn.__all__)
    return NN_HEAD + "".join([*imports, "\n", *definitions, f"__all__ = [\n{names}]\n"])


def _definition(name: str, record) -> str:
    """The definition of a function with the signature and the summary of a record."""
    parameters, is_keyword = [], False
    for parameter in inspect.signature(record).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not is_keyword:
            parameters.append("*")
            is_keyword = True
        default = parameter.default
        is_literal = default is None or type(default) in (bool, int, float, str, tuple)
        shown = repr(default).replace("'", '"') if is_literal else "..."
        is_required = default is parameter.empty
        star = "*" if parameter.kind is parameter.VAR_POSITIONAL else ""
        parameters.append(f"{star}{parameter.name}: Any" + ("" if is_required else f" = {shown}"))
    signature = f"({', '.join(parameters)}) -> Any:"
    if len(f"def {name}{signature}") > WIDTH:
        inside = ", ".join(parameters)
        if len(inside) + 4 > WIDTH:
            inside = ",\n    ".join(parameters) + ","
        signature = f"(\n    {inside}\n) -> Any:"
    # the record of one of NumPy's functions is documented by NumPy
    text = f"NumPy's ``{name}``." if record.numpy else inspect.getdoc(record).split("\n\n")[1]
    summary = textwrap.fill(f'"""{" ".join(text.split())}"""', WIDTH - 4)
    return f"def {name}{signature}\n{textwrap.indent(summary, '    ')}\n\n"


if __name__ == "__main__":
    PAGE.write_text(stub(), encoding="utf-8")
    NN_PAGE.write_text(nn_stub(), encoding="utf-8")
