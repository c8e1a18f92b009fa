"""The reference evaluator of programs, and the array modules that it computes with.

Read ``evaluator`` first. ``arguments`` checks and nests the arguments of a call. The modules
``array_modules`` and ``device_*`` are the only ones that know CuPy.
"""
