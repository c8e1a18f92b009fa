"""Samples of ``letir.ops.elementwise``."""
