"""Samples of ``letir.ops.nn``."""
