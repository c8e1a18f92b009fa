"""Samples of ``letir.ops.control_flow``."""
