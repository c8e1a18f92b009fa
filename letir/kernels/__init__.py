"""Kernels: groups of operations compiled to machine code (needs the extra ``fast``).

A group of binds becomes a program of the loop language (``loop_language``), whose scalar
instructions (``scalar_instructions``) LLVM compiles (``llvm``) to the inner loop of a NumPy
ufunc.
"""
