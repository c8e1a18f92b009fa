"""Samples of ``letir.ops.indexing``."""
