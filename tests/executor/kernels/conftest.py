"""Kernels for the smallest groups."""

import pytest


@pytest.fixture
def everything_pays(monkeypatch):
    """Kernels for all groups, chains and loops that can have one, however small they are."""
    pytest.importorskip("llvmlite")
    from letir.executor import compiled
    from letir.executor.kernels import kernel_binds, loop_kernels
    from letir.passes.fusion import clustering, unrolled_clusters

    worth = clustering.WORTH
    monkeypatch.setattr(compiled, "_LONG_CHAIN", 0)
    monkeypatch.setattr(unrolled_clusters, "LEAST_WORK", 0)
    monkeypatch.setattr(clustering, "WORTH", 0)
    monkeypatch.setattr(loop_kernels, "LEAST_CALLS", 0)
    monkeypatch.setattr(compiled, "WORTH", 0)
    changed = [0 if value == worth else value for value in kernel_binds.with_kernels.__defaults__]
    monkeypatch.setattr(kernel_binds.with_kernels, "__defaults__", tuple(changed))


@pytest.fixture
def tables_pay(monkeypatch):
    """A table of instructions for each chain that can have one, however short it is."""
    pytest.importorskip("llvmlite")
    from letir.executor import compiled
    from letir.executor.kernels import table_kernels

    monkeypatch.setattr(compiled, "_LEAST_IN_TABLE", 0)
    monkeypatch.setattr(table_kernels, "_LEAST", 1)
    monkeypatch.setattr(table_kernels, "_GAIN", float("inf"))
