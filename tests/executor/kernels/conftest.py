"""Kernels for the smallest groups."""

from contextlib import contextmanager

import pytest
from attrs import evolve

from letir.kernels import machine_costs


@contextmanager
def changed_costs(**values):
    """The costs of this computer with other values."""
    costs = evolve(machine_costs.family_costs(), **values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine_costs, "family_costs", lambda: costs)
        machine_costs.machine_costs.cache_clear()
        try:
            yield
        finally:
            machine_costs.machine_costs.cache_clear()


@pytest.fixture
def everything_pays(monkeypatch):
    """Kernels for all groups, chains and loops that can have one, however small they are."""
    pytest.importorskip("llvmlite")
    from letir.executor import compiled
    from letir.executor.kernels import convolution_calls, kernel_kinds
    from letir.passes.fusion import clustering, unrolled_clusters

    monkeypatch.setattr(compiled, "may_have_kernels", lambda fn: True)
    monkeypatch.setattr(convolution_calls, "_MIN_WORK", 0)
    monkeypatch.setattr(convolution_calls, "_MIN_USE", 0)
    monkeypatch.setattr(clustering, "MIN_KERNEL_ELEMENTS", 0)
    monkeypatch.setattr(kernel_kinds, "LONG_CHAIN", 0)
    monkeypatch.setattr(unrolled_clusters, "MIN_WORK", 0)
    with changed_costs(least_elements=0, least_loop_calls=0, compiles_functions=True):
        yield


@pytest.fixture
def tables_pay(monkeypatch):
    """A table of instructions for each chain that can have one, however short it is."""
    pytest.importorskip("llvmlite")
    from letir.executor import compiled
    from letir.executor.kernels import kernel_kinds, table_kernels

    monkeypatch.setattr(compiled, "may_have_kernels", lambda fn: True)
    monkeypatch.setattr(kernel_kinds, "_MIN_IN_TABLE", 0)
    monkeypatch.setattr(table_kernels, "_MIN_BINDS", 1)
    monkeypatch.setattr(table_kernels, "_GAIN", float("inf"))
