"""Samples of ``letir.ops.shape``."""
