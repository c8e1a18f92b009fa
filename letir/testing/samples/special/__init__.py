"""Samples of ``letir.ops.special``."""
