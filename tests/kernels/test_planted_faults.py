"""Wrong kernels are found: each test plants a fault, and a test of the suite fails.

A fault is planted in the emitter of LLVM's text, in a formula, or in the shape of a loop. One that
would write beyond an array is planted under the interpreter, which tests every index.
"""

from collections.abc import Callable

import numpy as np
import pytest
from attrs import evolve

from letir.errors import InternalError
from letir.executor.compiled import kernels_setting
from letir.kernels import (
    loop_builder,
    reduction_forms,
    scalar_forms,
    unrolled_groups,
)
from letir.kernels.elementary import complex_numbers, exponentials
from letir.kernels.llvm import machine_code
from letir.kernels.llvm.llvm_statements import _BY_KIND, StatementText
from letir.kernels.llvm.vector_loops import VectorLoops
from letir.kernels.llvm.wide_loops import WideLoops
from letir.kernels.loop_builder import Builder
from letir.kernels.loop_parts import LoopParts

pytest.importorskip("llvmlite")
if kernels_setting() == "off":
    pytest.skip("LETIR_KERNELS=off", allow_module_level=True)
from tests.executor.kernels import test_group_kernels as group_tests
from tests.executor.kernels import test_loop_kernels as loop_tests
from tests.executor.kernels import test_row_kernels as row_tests
from tests.executor.kernels import test_unrolled_kernels as chain_tests
from tests.kernels import test_scalar_forms as form_tests
from tests.kernels.elementary import functions
from tests.kernels.elementary import test_accuracy as accuracy_tests
from tests.kernels.elementary import test_complex_numbers as complex_tests
from tests.kernels.llvm import test_chunks as chunk_tests
from tests.kernels.llvm import test_machine_code as instruction_tests
from tests.kernels.llvm import test_vector_loops as vector_tests
from tests.kernels.llvm import test_wide_loops as wide_tests

F8 = np.dtype("f8")


@pytest.fixture
def plant(monkeypatch):
    """``monkeypatch``, with no kernels from before or for after."""
    monkeypatch.setenv("LETIR_CACHE_DIR", "")
    for forget in (machine_code._ufuncs.clear, functions.compiled.cache_clear):
        forget()
    yield monkeypatch
    monkeypatch.undo()
    for forget in (machine_code._ufuncs.clear, functions.compiled.cache_clear):
        forget()


def _half_way(self, access) -> str:
    """The address of an element at half of the index, which is in the array as well."""
    index, bits = self.names[self.plan.index], 4 * access.array.dtype.itemsize
    return self.value(f"getelementptr i{bits}, ptr {self.places[access]}, i64 {index}")


def replace(old: str, new: str) -> Callable:
    """A fault: every ``old`` in LLVM's text of a kernel is ``new``."""

    def planted(plant):
        written = machine_code.llvm_text

        def llvm_text(*args):
            module = written(*args)
            return evolve(module, text=module.text.replace(old, new))

        plant.setattr(machine_code, "llvm_text", llvm_text)

    return planted


def opcode(name: str, wrong: str) -> Callable:
    """A fault: an instruction is emitted as another one."""
    return lambda plant: plant.setitem(_BY_KIND, name, _BY_KIND[wrong])


def form(name: str, wrong: Callable) -> Callable:
    """A fault: an operation has a wrong scalar form."""
    return lambda plant: plant.setitem(scalar_forms._FORMS, name, wrong)


def reduction(name: str, **wrong: object) -> Callable:
    """A fault: a reduction has a wrong form."""
    known = reduction_forms.REDUCTIONS[name]
    return lambda plant: plant.setitem(reduction_forms.REDUCTIONS, name, evolve(known, **wrong))


def method(kind: type, name: str, wrong: Callable) -> Callable:
    """A fault: a class has a wrong method."""
    return lambda plant: plant.setattr(kind, name, wrong)


def instruction(name: str) -> Callable:
    return lambda: instruction_tests.test_an_instruction_computes_as_on_numpy_arrays(name)


def operation(name: str) -> Callable:
    """The law of the forms of an operation, on all of its samples."""

    def check() -> None:
        for others in False, True:
            try:
                form_tests.test_a_form_computes_what_numpy_computes(
                    lambda: [name], others, lambda *_: None
                )
            except ExceptionGroup as group:
                raise group.exceptions[0] from None

    return check


def special(name: str) -> Callable:
    return lambda: form_tests.test_special_values_give_the_bits_of_numpy(name, "f8")


def rows(f: Callable) -> Callable:
    return lambda: row_tests.test_a_function_with_reductions_is_one_kernel(f, "f8")


def reduced(dtype: str) -> Callable:
    return lambda: row_tests.test_integers_are_reduced_in_the_dtypes_of_numpy(dtype)


def chain(name: str) -> Callable:
    return lambda: chain_tests.test_an_unrolled_loop_is_one_kernel(name)


def loop(name: str) -> Callable:
    return lambda: loop_tests.test_a_loop_is_one_kernel(name)


def accuracy(name: str) -> Callable:
    ranges = functions.RANGES[name][0]
    return lambda: accuracy_tests.test_machine_code_is_accurate(name, ranges, F8)


def wide(name: str) -> Callable:
    return lambda: wide_tests.test_steps_of_vectors_compute_what_the_interpreter_computes(name)


def complex_operation(name: str) -> Callable:
    return lambda: complex_tests.test_an_operation_gives_the_bits_of_numpy(name, "c16")


def groups() -> None:
    group_tests.test_a_kernel_computes_the_bits_of_numpy()


def _maximum_without_nan(b, x, y):
    return b.select(b.let("gt", x, y), x, y)


def _remainder_of_c(b, x, y):
    return b.let("fmod", x, y)


def _quotient_of_c(b, x, y):
    return b.let("quotient", x, y) if x.dtype.kind in "iu" else b.let("floor", b.div(x, y))


def _block_lost(self, b, parts, block):
    return (block[0], parts[1])


def _last_element_again(self, x):
    found = self.elements[x]
    return (
        self.elements[x - 1] if found is None and x and self.elements[x - 1] else ELEMENT(self, x)
    )


def _turned(b, x):
    """A complex number times i, up to its sign."""
    return complex_numbers.Pair(x.imag, x.real)


ELEMENT = unrolled_groups.Unrolling.element
NEXT = loop_builder._OpenLoop.next


def _first_again(self, *values):
    """The next step begins with what this step began with, its number aside."""
    NEXT(self, *values[:1], *self.carried[1:])


FAULTS: dict[str, tuple[Callable, Callable]] = {
    "sub for add": (opcode("add", "sub"), instruction("add")),
    "add for sub in groups": (opcode("sub", "add"), rows(row_tests.normalised)),
    "at most for less than": (opcode("lt", "le"), instruction("lt")),
    "ordered for unordered": (replace("fcmp une", "fcmp one"), instruction("ne")),
    "a shift without signs": (opcode("shr", "lshr"), instruction("shr")),
    "unsigned numbers for signed ones": (replace("sitofp", "uitofp"), instruction("convert")),
    "the operands of select swapped": (
        lambda plant: plant.setattr(
            Builder, "select", lambda self, c, x, y: self.let("select", c, y, x)
        ),
        groups,
    ),
    "loops that start at one": (
        method(StatementText, "steps_of", lambda self, loop: ("1", "1")),
        reduced("i8"),
    ),
    "steps of vectors that all read the first elements": (
        method(WideLoops, "place", lambda self, access: self.places[access]),
        groups,
    ),
    "elements of the first step that no vector computes": (
        replace("phi i64 [0, %entry]", "phi i64 [64, %entry]"),
        wide("floats"),
    ),
    "last elements that are not computed": (
        replace("label %chunk, label %end", "label %end, label %end"),
        wide("floats"),
    ),
    "vectors that are left out of a sum": (
        method(WideLoops, "joined", lambda self, let, parts: parts[0]),
        reduced("i4"),
    ),
    "lanes without an element that are added": (
        method(WideLoops, "let", VectorLoops.let),
        lambda: wide_tests.test_reductions_of_vectors_are_those_of_elements("add", "i4", 37),
    ),
    "chunks that are left out": (
        replace("add i64 %start, 512", "add i64 %start, 1024"),
        lambda: chunk_tests.test_the_bits_do_not_depend_on_strides("columns", "f8"),
    ),
    "loops that leave out every other step": (
        method(StatementText, "steps_of", lambda self, loop: ("0", "2")),
        reduced("i4"),
    ),
    "last vectors that begin at the first step": (
        method(VectorLoops, "steps_of", lambda self, _: ("0", str(self.lanes))),
        lambda: vector_tests.test_steps_in_vectors_compute_what_single_steps_compute("f8", True),
    ),
    "strides of half an element": (method(WideLoops, "place", _half_way), reduced("i8")),
    "a maximum that hides nan": (form("maximum", _maximum_without_nan), special("maximum")),
    "the remainder of C": (form("remainder", _remainder_of_c), special("remainder")),
    "division of integers towards zero": (
        form("floor_divide", _quotient_of_c),
        lambda: form_tests.test_integers_are_divided_by_known_divisors("i4", 3),
    ),
    "logical_and of bits": (
        form("logical_and", lambda b, x, y: scalar_forms._truth_value(b, b.let("and", x, y))),
        operation("logical_and"),
    ),
    "a sum that starts at one": (
        reduction("sum", start=1),
        reduced("i4"),
    ),
    "a maximum that starts at zero": (
        reduction("max", start=0),
        rows(lambda x: (-x * x - 1).max(axis=1)),
    ),
    "a maximum without its mask of nan": (
        reduction("max", has_nan=False),
        row_tests.test_nan_and_infinities_are_reduced_as_by_numpy,
    ),
    "a mean that is not divided": (reduction("mean", is_divided=False), rows(row_tests.normalised)),
    "blocks of a sum that are lost": (
        method(reduction_forms.Compensated, "with_block", _block_lost),
        rows(lambda x: (x * 2).sum()),
    ),
    "elements in another order": (
        lambda plant: plant.setattr(
            unrolled_groups.Unrolling,
            "new",
            lambda self, scalars, shape, known=unrolled_groups.Unrolling.new: known(
                self, list(scalars)[::-1], shape
            ),
        ),
        chain("small matrices"),
    ),
    "a neighbour for an element": (
        method(unrolled_groups.Unrolling, "element", _last_element_again),
        chain("a buffer"),
    ),
    "values of the first step in each": (
        method(loop_builder._OpenLoop, "next", _first_again),
        loop("rotation"),
    ),
    "a loop that is not reversed": (
        lambda plant: plant.setattr(LoopParts, "is_reverse", False),
        loop("in reverse"),
    ),
    "a complex product that is rounded once more": (
        lambda plant: plant.setattr(
            complex_numbers,
            "fuses_products",
            lambda d, known=complex_numbers.fuses_products: not known(d),
        ),
        complex_operation("product"),
    ),
    "a quotient by the smaller part": (
        lambda plant: plant.setitem(
            complex_numbers._FORMS,
            "div",
            lambda b, x, y: complex_numbers._div(b, _turned(b, x), _turned(b, y)),
        ),
        complex_operation("quotient"),
    ),
    "the real part for the imaginary part": (
        method(
            StatementText,
            "part_address",
            lambda self, one, bases: self.address(one.array, one.indices, bases),
        ),
        complex_operation("conjugate"),
    ),
    "a wrong coefficient": (
        lambda plant: plant.setattr(
            exponentials,
            "EXP",
            {k: (c[0] * (1 + 1e-12), *c[1:]) for k, c in exponentials.EXP.items()},
        ),
        accuracy("exp"),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(plant, name):
    fault, law = FAULTS[name]
    law()
    machine_code._ufuncs.clear()
    functions.compiled.cache_clear()
    fault(plant)

    with pytest.raises(AssertionError):
        law()


@pytest.mark.parametrize("by", [1, -1])
def test_steps_beyond_an_array_are_found(plant, by):
    """One step too many, and a step before the first."""
    load = Builder.load

    def shifted(self, array, indices, **options):
        return load(self, array, (*indices[:-1], self.add(indices[-1], self.number(by, "i8"))))

    plant.setenv("LETIR_CHECK_KERNELS", "1")
    plant.setattr(Builder, "load", shifted)
    with pytest.raises(InternalError, match="outside of the array"):
        groups()
