"""Samples of ``letir.ops.linalg``."""
