"""Passes ask facts: a record with another name and the same facts is treated in the same way.

So an operation of another name, also one that holds bodies, needs its record only.
"""

from collections.abc import Callable

import numpy as np
import pytest
from attrs import evolve

import letir as lt
from letir.ad.linearity import Linearity
from letir.ast.bodies import map_bodies
from letir.ast.builder import LetBuilder
from letir.ast.primitive import PRIMITIVES, Primitive
from letir.ast.terms import Bind, Lambda, Ret
from letir.ast.types import PYTHON_NUMBERS
from letir.errors import LetirError
from letir.passes import (
    common_subexpressions,
    constant_propagation,
    copy_outliving_views,
    dead_code,
    erase_number_types,
    fuse,
    in_place_check,
    inline_bodies,
    loop_invariants,
    propagate_requires_grad,
    propagate_shapes,
    unroll,
)
from letir.testing import SAMPLES, applied_program

PREFIX = "renamed_"


def linear_params(fn: Lambda) -> str:
    """In which parameters a program is linear, each alone."""
    found = []
    for param in fn.params:
        try:
            Linearity(fn, [param], "linear", "")
        except LetirError:
            found.append("no")
        else:
            found.append("linear")
    return " ".join(found)


def needed_results(fn: Lambda) -> str:
    """Which results require grad if the first parameter does."""
    found = propagate_requires_grad(fn, [i == 0 for i in range(len(fn.params))])
    return " ".join(str(arg in found) for arg in fn.ret.args)


def one_result(fn: Lambda) -> Lambda:
    """``fn`` with its last result only."""
    return Lambda(fn.params, fn.binds, Ret(fn.ret.args[-1:]))


def in_a_program(fn: Lambda) -> Lambda:
    """``fn`` called twice on negated arguments, followed by operations on its results."""
    builder, neg = LetBuilder(), PRIMITIVES["neg"]
    args = [builder.param(param.type).arg for param in fn.params]
    args = [
        builder.emit(neg, (a,))[0] if a.type is not None and a.type.dtype.kind == "f" else a
        for a in args
    ]
    results = [*builder.inline(fn, args), *builder.inline(fn, args)]
    results += [
        builder.emit(PRIMITIVES["exp"], (r,))[0]
        for r in results
        if r.type is not None and r.type.dtype.kind == "f"
    ]
    return builder.build(results)


PASSES: dict[str, Callable[[Lambda], object]] = {
    "dead_code": lambda fn: dead_code(one_result(fn)),
    "inline_bodies": lambda fn: inline_bodies(fn, keep_rules=False),
    "loop_invariants": loop_invariants,
    "unroll": unroll,
    "propagate_shapes": propagate_shapes,
    "requires_grad": needed_results,
    "linearity": linear_params,
    "common_subexpressions": lambda fn: common_subexpressions(in_a_program(fn)),
    "fuse": lambda fn: fuse(in_a_program(fn)),
    "erase_number_types": erase_number_types,
    "in_place_check": lambda fn: in_place_check(in_a_program(fn)),
    "copy_outliving_views": lambda fn: copy_outliving_views(in_a_program(fn)),
}


@pytest.fixture
def renamed():
    """``renamed(op)``: a record of another name with the same facts, while the test runs."""
    made = []

    def make(op: Primitive) -> Primitive:
        made.append(PREFIX + op.name)
        PRIMITIVES[made[-1]] = evolve(op, name=made[-1])
        return PRIMITIVES[made[-1]]

    yield make
    for name in made:
        del PRIMITIVES[name]


def with_op(fn: Lambda, op: Primitive, new: Primitive) -> Lambda:
    """``fn`` with another operation in the binds of ``op``."""
    binds = [Bind(b.binders, new, b.args, b.attrs, b.source) if b.op is op else b for b in fn.binds]
    return fn.with_binds(binds)


def outcome(change: Callable, fn: Lambda, op: Primitive, new: Primitive) -> str:
    """The text of the program that a pass returns with ``new`` for ``op``, renamed to ``op`` again;
    or the error.
    """
    try:
        found = change(with_op(fn, op, new))
    except LetirError as error:
        return str(error).replace(PREFIX, "")
    if type(found) is str:
        return found
    return lt.dumps(map_bodies(found, lambda body: with_op(body, new, op)))


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_asks_records_for_facts(name, renamed):
    for op_name, samples in SAMPLES.items():
        op = PRIMITIVES[op_name]
        new = renamed(op)
        # a rule of elementwise operations is traced once for each sample: a few samples suffice
        for sample in samples if op.holds_lambdas else samples[:3]:
            program, _ = applied_program(op, sample)

            expected = outcome(PASSES[name], program, op, op)

            assert expected == outcome(PASSES[name], program, op, new), op_name


def test_constant_propagation_asks_records_for_facts(renamed):
    for op_name, samples in SAMPLES.items():
        op = PRIMITIVES[op_name]
        new = renamed(op)
        for sample in samples:
            program, args = applied_program(op, sample, constants=True)
            builder = LetBuilder()
            values = [
                a if type(a) in PYTHON_NUMBERS else builder.constant(np.asarray(a)) for a in args
            ]
            if any(p.type is not v.type for p, v in zip(program.params, values, strict=True)):
                continue
            closed = builder.build(builder.inline(program, values))

            expected = outcome(constant_propagation, closed, op, op)

            assert expected == outcome(constant_propagation, closed, op, new), op_name
