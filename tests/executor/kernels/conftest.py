"""Kernels for the smallest groups."""

import pytest
from attrs import evolve

from letir.kernels import machine_costs


@pytest.fixture
def change_costs(monkeypatch):
    """A function that changes the costs of this computer for one test."""

    def change(**values):
        costs = evolve(machine_costs.family_costs(), **values)
        monkeypatch.setattr(machine_costs, "family_costs", lambda: costs)
        machine_costs.machine_costs.cache_clear()

    yield change
    monkeypatch.undo()
    machine_costs.machine_costs.cache_clear()


@pytest.fixture
def everything_pays(monkeypatch, change_costs):
    """Kernels for all groups, chains and loops that can have one, however small they are."""
    pytest.importorskip("llvmlite")
    from letir.executor import compiled
    from letir.passes.fusion import clustering, unrolled_clusters

    change_costs(least_elements=0, least_loop_calls=0)
    monkeypatch.setattr(clustering, "FEWEST", 0)
    monkeypatch.setattr(compiled, "_LONG_CHAIN", 0)
    monkeypatch.setattr(unrolled_clusters, "LEAST_WORK", 0)


@pytest.fixture
def tables_pay(monkeypatch):
    """A table of instructions for each chain that can have one, however short it is."""
    pytest.importorskip("llvmlite")
    from letir.executor import compiled
    from letir.executor.kernels import table_kernels

    monkeypatch.setattr(compiled, "_LEAST_IN_TABLE", 0)
    monkeypatch.setattr(table_kernels, "_LEAST", 1)
    monkeypatch.setattr(table_kernels, "_GAIN", float("inf"))
