"""Kernels of loops on small arrays, which keep the arrays of the body in flat buffers."""
