"""Samples of ``letir.ops.signal``."""
