"""Kernels that read arrays at shifted indices, and write into parts of arrays."""
