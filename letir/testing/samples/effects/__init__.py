"""Samples of ``letir.ops.effects``."""
