"""Write ``letir/ops/record_index.py`` and ``letir/tracing/numpy_functions/function_index.py``.

They say which file defines what, so that a program loads the files of its own operations only.

python docs/make_index.py
"""

import importlib
import pkgutil
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import letir.ops
from letir.ast.primitive import PRIMITIVES

ROOT = Path(letir.ops.__file__).parents[1]
RECORDS = ROOT / "ops" / "record_index.py"
PLAIN_FUNCTIONS = ROOT / "tracing" / "numpy_functions" / "function_index.py"
HEAD_OF_RECORDS = '''\
"""Which file of ``letir/ops`` defines which records: read by ``letir.ops``.

Written by ``python docs/make_index.py``; a test fails if it is not up to date.
"""

'''
HEAD_OF_FUNCTIONS = '''\
"""Which file of this folder says what a NumPy function gives: read by ``registry``.

Written by ``python docs/make_index.py``; a test fails if it is not up to date.
"""

'''


class Watched(type(PRIMITIVES)):
    """The table of primitives, which notes in which file each record is registered."""

    def __setitem__(self, name, record):
        frame = sys._getframe()
        while frame.f_code.co_name != "<module>":
            frame = frame.f_back
        OWNERS[name] = frame.f_globals["__name__"].removeprefix("letir.ops.")
        super().__setitem__(name, record)


OWNERS: dict[str, str] = {}


def records_index() -> str:
    """The text of ``letir/ops/record_index.py``. Only right in a process that has no record yet."""
    assert not PRIMITIVES, "records are loaded already: their files are not known"
    PRIMITIVES.__class__ = Watched
    for module in pkgutil.walk_packages(letir.ops.__path__, "letir.ops."):
        importlib.import_module(module.name)
    operations: dict[str, list[str]] = {module: [] for module in sorted(set(OWNERS.values()))}
    functions: dict[str, list[str]] = {}
    names = [(f.__name__, op.name) for op in PRIMITIVES.values() for f in op.numpy]
    of_scipy = importlib.import_module("letir.ops.special.define").OF_SCIPY
    for function, operation in [*names, *of_scipy.items()]:
        functions.setdefault(OWNERS[operation], []).append(function)
    for operation, module in OWNERS.items():
        operations[module].append(operation)
    return (
        HEAD_OF_RECORDS
        + table("OPERATIONS", "module: the operations that it defines", operations)
        + "\n"
        + table("FUNCTIONS", "module: the NumPy and SciPy functions that they record", functions)
    )


def functions_index() -> str:
    """The text of ``letir/tracing/numpy_functions/function_index.py``."""
    found = {}
    registry = importlib.import_module("letir.tracing.numpy_functions.registry")
    for name in registry.LOADED_ON_USE:
        module = importlib.import_module(f"letir.tracing.numpy_functions.{name}")
        found[name] = [function.__name__ for function in module.FUNCTIONS]
    return HEAD_OF_FUNCTIONS + table("FUNCTIONS", "module: names of NumPy's functions", found)


def table(name: str, comment: str, words: dict[str, Iterable[str]]) -> str:
    """A dict from modules to sorted words."""
    lines = [f"{name} = {{  # {comment}"]
    for module in sorted(words):
        text = textwrap.fill(" ".join(sorted(set(words[module]))), 92, break_on_hyphens=False)
        one_line = f'    "{module}": "{text}",'
        if len(one_line) <= 100 and "\n" not in text:
            lines.append(one_line)
        else:
            lines.append(f'    "{module}": """\n{textwrap.indent(text, " " * 8)}\n    """,')
    return "\n".join([*lines, "}\n"])


if __name__ == "__main__":
    written = {RECORDS: records_index(), PLAIN_FUNCTIONS: functions_index()}
    for path, text in written.items():
        if "--check" in sys.argv:
            assert path.read_text(encoding="utf-8") == text, f"{path.name} is not up to date"
        else:
            path.write_text(text, encoding="utf-8")
