"""NumPy programs as people write them record, replay, compile and differentiate unchanged."""

import contextlib
import copy
import importlib
from pathlib import Path

import numpy as np
import optree
import pytest

import letir as lt
from tests.each_sample import in_one_test
from tests.programs.table import PROGRAMS

FOLDER = Path(__file__).parent
for path in sorted(FOLDER.rglob("*.py")):
    if path.stem not in ("table", "test_programs"):
        module = ".".join(path.relative_to(FOLDER).with_suffix("").parts)
        importlib.import_module(f"tests.programs.{module}")


def each(programs):
    """A test for each of the programs, under their names."""
    return pytest.mark.parametrize("program", programs, ids=lambda p: p.name)


def arguments(program, seed):
    """New arguments, the same ones for one seed."""
    return program.arguments(np.random.default_rng(seed))


def assert_agree(expected, actual):
    """Check that two results have the same tree and nearly the same leaves."""
    leaves, tree = optree.tree_flatten(expected, none_is_leaf=True)
    others, other_tree = optree.tree_flatten(actual, none_is_leaf=True)
    assert tree == other_tree
    for leaf, other in zip(leaves, others, strict=True):
        if isinstance(leaf, str):
            assert leaf == other
            continue
        assert np.shape(leaf) == np.shape(other)
        assert np.asarray(leaf).dtype == np.asarray(other).dtype
        np.testing.assert_allclose(other, leaf, rtol=1e-9, atol=1e-11)


def weighted_sum(result):
    """A number that depends on all floating leaves of a result."""
    total = 0.0
    for leaf in optree.tree_leaves(result):
        if np.asarray(leaf).dtype.kind == "f":
            total = total + np.sum(leaf * np.cos(np.arange(np.size(leaf))).reshape(np.shape(leaf)))
    return total


@in_one_test
@each([p for p in PROGRAMS if not p.refused])
def test_a_trace_replays_at_other_arguments(program):
    fn = lt.trace(program.function, *arguments(program, 0))

    for seed in (0, 1):
        try:
            actual = fn(*arguments(program, seed))
        except lt.GuardError:
            assert program.branches and seed
            continue
        assert_agree(program.function(*arguments(program, seed)), actual)


@each(PROGRAMS)
def test_jit_agrees_with_numpy(program):
    fast = lt.jit(program.function)
    is_told = pytest.warns(RuntimeWarning, match="as Python")

    with is_told if program.as_python else contextlib.nullcontext():
        for seed in (0, 1, 0):
            expected = program.function(*arguments(program, seed))
            assert_agree(expected, fast(*arguments(program, seed)))


@each([p for p in PROGRAMS if p.smooth is not None])
def test_grad_agrees_with_differences(program):
    args = list(arguments(program, 0))
    leaves, tree = optree.tree_flatten(args[program.smooth])
    rng = np.random.default_rng(5)
    direction = [rng.normal(size=np.shape(leaf)) for leaf in leaves]

    def loss(*args):
        return weighted_sum(program.function(*args))

    def at(step):
        moved = [leaf + step * d for leaf, d in zip(leaves, direction, strict=True)]
        new = copy.deepcopy(args)
        new[program.smooth] = tree.unflatten(moved)
        return loss(*new)

    gradient = lt.grad(loss, argnums=program.smooth)(*copy.deepcopy(args))
    slope = sum(np.sum(g * d) for g, d in zip(optree.tree_leaves(gradient), direction, strict=True))
    numeric = (8 * (at(1e-5) - at(-1e-5)) - (at(2e-5) - at(-2e-5))) / 12e-5

    assert slope == pytest.approx(numeric, rel=2e-5, abs=1e-6)


@each([p for p in PROGRAMS if p.refused])
def test_a_refused_program_is_refused_by_trace(program):
    with pytest.raises(lt.TraceError):
        lt.trace(program.function, *arguments(program, 0))


def test_the_table_holds_many_programs():
    assert len(PROGRAMS) >= 450
    assert not any(p.refused for p in PROGRAMS)
