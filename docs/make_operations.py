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
MET_OFTEN = """\
## Operations that letir adds

Most operations have the name and the meaning of the NumPy function that records them. These do not:

| operation | what it does |
|---|---|
| `constant` | an array that belongs to the program, such as its copy of a global array |
| `cast` | `x.astype(dtype)` |
| `weaken` | marks a result as a Python number, because it was computed from Python numbers alone: its type gets a star, `float64*[]`, and in promotion it counts as a Python number |
| `python_operator`, `math_function`, `math_reduction`, `complex_math_function` | an operator of Python numbers, or a function of `math` or `cmath`, where Python's result differs from NumPy's |
| `index` | `x[item]`; in the attribute `item`, `@` stands for the next operand |
| `index_set`, `index_add` | a copy of `x` after `x[item] = new`, or after `new` was added there |
| `assemble` | zeros with each part added at its index: the sum of several cotangents of parts of one array |
| `dynamic_slice` | `x[i:i+n]` for a start `i` that is an operand |
| `size`, `length`, `sized` | the shape of an operand, one of its sizes, and an operation whose settings are such sizes |
| `sum_to_size` | sums a cotangent back to the shape that was broadcast |
| `quotient` | `x / y`, but 0 where both are 0, for derivatives of roots |
| `ufunc_reduce`, `ufunc_accumulate`, `ufunc_reduceat`, `ufunc_at` | methods of NumPy's ufuncs without an operation of their own |
| `guard`, `guard_raised`, `guard_computed`, `guard_order` | raise `GuardError` unless a value, an exception or a memory order is as it was recorded ([guards](guards.md)) |
| `guard_separate` | raises an error if one of the first `written` operands shares memory with another operand ([writing in place](in_place.md#arguments)) |
| `write_back` | writes a value into the caller's array ([writing in place](in_place.md#arguments)) |
| `print`, `errstate` | a `letir.debug.print`, and operations inside `with np.errstate(...)` |
| `stop_gradient`, `barrier` | the operand itself: derivatives stop there, or passes do not merge what is computed from it |
| `looped` | an operation without a batching rule, for one example after the other |
| `map`, `reduce`, `associative_scan`, `scan`, `fori_loop`, `while_loop`, `cond`, `switch` | [control flow](control_flow.md); `while_scan` is a `while_loop` that stacks what its backward pass reads |
| `checkpoint`, `custom_vjp`, `custom_jvp`, `scripted` | a function together with its own derivative rule |
| `grad_of`, `autograd_add`, `when_defined`, `instantiate` | steps of a gradient program, whose cotangents may be missing ([semantics](semantics.md#d2-to-d5-the-gradient-program)) |
| `fused`, `differentiable_graph` | a group of operations that a plan runs as one ([passes](passes.md#fewer-and-larger-binds)) |
| `generator_draw` | a draw from one of NumPy's generators; the next state of the generator is a result |
| `scipy_call`, `scipy_solve` | a call of a function or a solver of SciPy ([SciPy](scipy.md#functions-that-scipy-computes)) |
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
    return "\n".join([HEAD.format(loops=loops()), MET_OFTEN, *tables, reasons()])


def place(module: ModuleType) -> int:
    """Where the page has a module: by its folder, in the order in which readers need them."""
    return FOLDERS.index(module.__name__.split(".")[2])


def loops() -> str:
    """The operations that a batch computes one by one."""
    return ", ".join(sorted(f"`{r.name}`" for r in PRIMITIVES.values() if rule(r.batch) == "loop"))


def family(module: ModuleType, records: Iterable[Primitive]) -> str:
    """The table of the records that one module defines."""
    title = module.__doc__.partition("\n")[0].partition(":")[0].strip(".").replace("``", "`")
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
