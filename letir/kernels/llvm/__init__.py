"""Kernels on the CPU: LLVM texts (``llvm_text``), ``machine_code``, and its cache on disk."""
