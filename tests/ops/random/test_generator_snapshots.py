"""Snapshots of generators: any state is restored, whatever was drawn meanwhile."""

import numpy as np
import pytest

from letir.ops.random import generator_snapshots
from letir.ops.random.generator_snapshots import restore_snapshot, take_snapshot
from letir.ops.random.generator_states import state_of

BITS = [np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64, np.random.MT19937]
GENERATORS = [*[np.random.Generator(bits(3)) for bits in BITS], np.random.RandomState(3)]


def draw(generator):
    """Numbers of all kinds."""
    integers = getattr(generator, "integers", None) or generator.randint
    return [generator.normal(), integers(9, dtype=np.int32), *generator.random(3).tolist()]


@pytest.mark.parametrize("generator", GENERATORS, ids=lambda g: type(g._bit_generator).__name__)
@pytest.mark.parametrize("is_copied", [True, False])
def test_a_restored_generator_draws_the_same_again(generator, is_copied, monkeypatch):
    if not is_copied:
        monkeypatch.setattr(generator_snapshots, "_BITS", ())
    generator_snapshots._place_of_state.cache_clear()
    draw(generator)

    saved, before = take_snapshot(generator), state_of(generator).tolist()
    first = draw(generator)
    restore_snapshot(generator, saved)

    assert before == state_of(generator).tolist()
    assert first == draw(generator)
    generator_snapshots._place_of_state.cache_clear()


def test_the_memory_of_numpys_generators_is_copied():
    kinds = [(type(g), type(g._bit_generator)) for g in GENERATORS]

    assert None not in map(generator_snapshots._place_of_state, kinds)
