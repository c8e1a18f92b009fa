"""Runs of plans that draw from the caller's random generators directly, without copying states.

If a run fails, the generators get back the states that they had at its start, so that the call can
be completed in another way.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from letir.ast import LATE_BOUND
from letir.eval.array_modules import ARRAY_CLASSES, array_module, cupy_module
from letir.eval.memory_checks import check_writable
from letir.ops.random.generator_snapshots import restore_snapshot, take_snapshot
from letir.ops.random.generator_states import state_array
from letir.plan.effect_log import EffectLog
from letir.plan.plan import plan_of


def run_with_generators(
    compiled: Any, leaves: list, tries: bool, log: EffectLog | None = None
) -> tuple:
    """The results of a plan whose arguments are generators.

    If an argument is a state, an array of words without a generator, the recorded program runs.
    """
    for n, generator in enumerate(compiled.generators, len(leaves)):
        leaves.append(generator if n in compiled.drawing else state_array(generator))
    states = [leaves[n] for n in compiled.drawing]
    for n, state in zip(compiled.drawing, states, strict=True):
        leaves[n] = getattr(state, "generator", None) if isinstance(state, np.ndarray) else state
    is_known = all(leaves[n] is not None for n in compiled.drawing)
    if not is_known:
        for n, state in zip(compiled.drawing, states, strict=True):
            leaves[n] = state
    check_writable(compiled.program, leaves, compiled.changed if not is_known else compiled.arrays)
    if not is_known:
        return plan_of(compiled.optimized).run(leaves, array_module(leaves), tries, log)
    xp = np if cupy_module() is None else array_module(leaves)
    if xp is not np:
        run = compiled.plan_on(xp).run
        return _run_restoring_states(compiled.drawing, run, leaves, xp, tries, log)
    plan = compiled.plan
    is_plain = plan.straight is not None and log is None
    if is_plain and ARRAY_CLASSES.issuperset(
        [type(leaf) for n, leaf in enumerate(leaves) if n not in compiled.drawing]
    ):
        return _run_restoring_states(compiled.drawing, plan.run_straight_line, leaves, tries)
    return _run_restoring_states(compiled.drawing, plan.run, leaves, np, tries, log)


def unchecked_runner(compiled: Any) -> Callable[[list], tuple]:
    """A function that runs a plan without checks, for arguments that are known to fit."""
    places, run, generators = compiled.drawing, compiled.plan.run_straight_line, compiled.generators
    if len(places) > 1 or generators:
        return lambda leaves: _run_restoring_states(places, run, leaves + list(generators))
    (place,) = places

    def run_one(leaves: list) -> tuple:
        generator = leaves[place]
        state = take_snapshot(generator)
        try:
            return run(leaves)
        except BaseException:
            restore_snapshot(generator, state)
            raise

    return run_one


def _run_restoring_states(
    places: tuple[int, ...], run: Callable, leaves: list, *options: Any
) -> tuple:
    """The results of a run with generators as arguments at these places.

    After an error they get back their states.
    """
    saved = [(leaves[n], take_snapshot(leaves[n])) for n in places]
    try:
        return run(leaves, *options)
    except BaseException:
        for generator, state in saved:
            restore_snapshot(generator, state)
        raise


LATE_BOUND.update(unchecked_runner=unchecked_runner, run_with_generators=run_with_generators)
