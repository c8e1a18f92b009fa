"""Write ``docs/operations.md``, the table of all operations, from their records.

python docs/make_operations.py
"""

from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from letir.ast.attrs import Required
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.record_fields import Absent
from letir.ast.text.printer import Printer
from letir.ops import load_all
from letir.ops.control_flow.loop_over_examples import LoopOverExamples
from letir.ops.record_index import OPERATIONS

PAGE = Path(__file__).with_name("operations.md")
HEAD = """\
# Operations

The operations of which programs consist. Each operation is one record in `letir/ops/`; this page is generated from the
records by `python docs/make_operations.py`, and a test fails if it is not up to date.

- *recorded from*: the NumPy functions that record the operation on traced values. Operators and methods of
  arrays (`x @ y`, `x.sum()`) record the same operations as these functions.
- *attributes*: the static parameters and their defaults, in the order of `listing()`.
- *reverse* and *forward*: whether the operation has a rule for `grad` and `vjp`, and for `jvp`. A dash means that
  there is no derivative; the last table says why.
- *batch*: whether `vmap` computes the operation for all examples at once. *loop* means one example after the other,
  in a bind called `looped`. This is used for your own operations without a rule, and for these of letir's: {loops}.

Operations of your own: [extending.md](extending.md).
"""
TABLE = """\
| operation | recorded from | attributes | reverse | forward | batch |
|---|---|---|---|---|---|
"""
FOLDERS = (
    *("elementwise", "shape", "reductions", "indexing", "linalg", "signal", "special", "random"),
    *("nn", "control_flow", "autodiff", "effects", "define"),
)
REASONS = "## Why some have no rule\n\n| reason | operations |\n|---|---|\n"


def page() -> str:
    """The text of the page."""
    tables = []
    for module in sorted(load_all(), key=place):
        names = OPERATIONS[module.__name__.removeprefix("letir.ops.")].split()
        tables.append(family(module, [op for op in PRIMITIVES.values() if op.name in names]))
    return "\n".join([HEAD.format(loops=loops()), *tables, reasons()])


def place(module: ModuleType) -> int:
    """Where the page has a module: by its folder, in the order in which readers need them."""
    return FOLDERS.index(module.__name__.split(".")[2])


def loops() -> str:
    """The operations that a batch computes one by one."""
    return ", ".join(sorted(f"`{r.name}`" for r in PRIMITIVES.values() if rule(r.batch) == "loop"))


def family(module: ModuleType, records: Iterable[Primitive]) -> str:
    """The table of the records that one module defines."""
    title = module.__doc__.partition("\n")[0].partition(":")[0].strip(".")
    file = f"`{module.__name__.replace('.', '/')}.py`"
    return f"## {title}\n\n{file}\n\n{TABLE}{''.join(map(row, records))}"


def row(record: Primitive) -> str:
    """The line of one record."""
    cells = (
        f"`{record.name}`",
        ", ".join(f"`{numpy_name(function)}`" for function in record.numpy),
        f"`{attributes(record)}`" if record.attrs else "",
        rule(record.vjp),
        rule(record.jvp),
        rule(record.batch),
    )
    return f"| {' | '.join(cells)} |\n"


def numpy_name(function) -> str:
    """What users call a NumPy function."""
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module.replace('numpy', 'np', 1).replace('np._core', 'np')}.{function.__name__}"


def attributes(record: Primitive) -> str:
    """The attributes with their defaults, as texts write them."""
    write = Printer().value
    return ", ".join(
        name if default is Required else f"{name}={write(default, '')}"
        for name, default in record.attrs.items()
    )


def rule(found) -> str:
    """Whether there is a rule."""
    if type(found) is LoopOverExamples:
        return "loop"
    return "yes" if type(found) is not Absent else "—" if found.final else "not yet"


def reasons() -> str:
    """The reasons for absent rules, each with its operations."""
    names: dict[str, dict[str, None]] = {}
    for record in PRIMITIVES.values():
        for found in (record.vjp, record.jvp, record.batch):
            if type(found) is Absent and "." not in record.name:
                names.setdefault(found.reason, {})[f"`{record.name}`"] = None
    # sorted, since rare operations are registered in the order in which they are asked for
    lines = [f"| {why} | {', '.join(sorted(ops))} |\n" for why, ops in names.items()]
    return REASONS + "".join(sorted(lines))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
