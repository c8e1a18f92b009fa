"""Samples of ``letir.ops.define``."""
