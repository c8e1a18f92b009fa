"""Samples of ``letir.ops.reductions``."""
