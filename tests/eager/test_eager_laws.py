"""Laws of eager mode, for every operation and every generated program: it agrees with traces."""

import numpy as np
from hypothesis import given

import letir as lt
from letir import Variable
from letir.eager import gradients, history, no_grad
from letir.eval.evaluator import run_flat
from letir.testing import assert_same
from letir.testing.samples import SAMPLES
from letir.testing.samples.sample import applied_program
from letir.testing.strategies import programs
from tests.each_sample import each_sample


def is_eager(op) -> bool:
    """Whether an operation has a gradient, also in eager mode."""
    return op.is_differentiable and not any("eager" in s.exempt for s in SAMPLES[op.name])


def variables_of(args, requires_grad=True) -> list:
    """Arrays as Variables; floating ones require grad."""
    found = []
    for arg in args:
        if not hasattr(arg, "dtype"):
            found.append(arg)
        else:
            inexact = np.asarray(arg).dtype.kind in "fc"
            found.append(Variable(arg, requires_grad=requires_grad and inexact))
    return found


def plain(value):
    return value.data if isinstance(value, Variable) else value


def cotangents(outs) -> list:
    """A cotangent for each result, with distinct elements."""
    return [np.linspace(0.5, 1.5, out.size, dtype=out.dtype).reshape(out.shape)[()] for out in outs]


def compared(fn, args) -> None:
    """Assert that eager values and gradients have the bits of the program's and its vjp's."""
    with np.errstate(all="ignore"):
        expected = run_flat(fn, list(args))
        leaves = variables_of(args)
        outs = run_flat(fn, list(leaves))
        for one, other in zip(expected, outs, strict=True):
            assert_same(one, plain(other))
        used = [i for i, out in enumerate(outs) if getattr(out, "requires_grad", False)]
        inputs = [i for i, leaf in enumerate(leaves) if getattr(leaf, "requires_grad", False)]
        if not used or not inputs:
            return
        cts = cotangents([outs[i] for i in used])
        found = gradients(
            [outs[i] for i in used], [leaves[i] for i in inputs], cts, allow_unused=True
        )
        df = lt.differentiate(fn, defined=[i in used for i in range(len(outs))])
        kept = run_flat(df.f, list(args))
        captured = [args[i] for i in df.df_input_captured_inputs]
        captured += [kept[i] for i in df.df_input_captured_outputs]
        # the program may find, inside a body, that no gradient reaches a result
        given = [ct for i, ct in zip(used, cts, strict=True) if i in df.df_input_vjps]
        direct = dict(zip(df.df_output_vjps, run_flat(df.df, [*given, *captured]), strict=True))
    for i, ct in zip(inputs, found, strict=True):
        if ct is not None and direct[i] is not lt.Undef:
            np.testing.assert_array_equal(direct[i], ct.data)
            assert np.asarray(direct[i]).dtype == ct.dtype


def is_defined(op, sample) -> bool:
    """Whether no cotangent is undefined."""
    return not any(arg is lt.Undef for arg in sample.args)


@each_sample(is_defined, among=is_eager, in_one_test=True, quick=3)
def test_every_operation_has_the_values_and_gradients_of_its_program(op, sample):
    """[D15] The same rules, emitted into a builder or computed at once."""
    compared(*applied_program(op, sample, constants=True))


@given(programs())
def test_generated_programs_have_the_values_and_gradients_of_their_gradient_programs(program):
    """[D15], [B7]"""
    fn, args = program
    compared(fn, args)


@given(programs())
def test_the_history_of_a_replay_computes_the_values_of_the_program(program):
    """[B7] The history replays to the same values."""
    fn, args = program
    with np.errstate(all="ignore"):
        leaves = variables_of(args)
        outs = [out for out in run_flat(fn, list(leaves)) if isinstance(out, Variable)]
        again = history(outs, [leaf for leaf in leaves if isinstance(leaf, Variable)])
        lt.check(again)
        given_arrays = [leaf.data for leaf in leaves if isinstance(leaf, Variable)]
        for out, expected in zip(run_flat(again, given_arrays), outs, strict=True):
            np.testing.assert_array_equal(expected.data, out)


@given(programs())
def test_values_are_the_same_without_recording(program):
    fn, args = program
    with np.errstate(all="ignore"), no_grad():
        outs = run_flat(fn, variables_of(args))
        for expected, out in zip(run_flat(fn, list(args)), outs, strict=True):
            assert_same(expected, plain(out))
            assert not getattr(out, "requires_grad", False)
