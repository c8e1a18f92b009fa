"""Kernels that compute small items side by side: a loop over the first axis of all arrays."""
