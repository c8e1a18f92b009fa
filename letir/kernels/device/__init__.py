"""Kernels on CuPy's devices: PTX texts (``ptx``, ``lanes``), ``launches``, and ``calls``."""
