"""Faster ways for frequent calls of jitted functions: generated tests of the arguments.

Read ``quick_calls`` first; ``argument_tests`` writes the tests, ``object_calls`` is for methods,
and ``python_calls`` calls the Python function itself where that takes less time than its plan.
"""
