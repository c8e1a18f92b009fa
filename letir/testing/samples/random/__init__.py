"""Samples of ``letir.ops.random``."""
