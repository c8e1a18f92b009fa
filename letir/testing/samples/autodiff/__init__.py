"""Samples of ``letir.ops.autodiff``."""
