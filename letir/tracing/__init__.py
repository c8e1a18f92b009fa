"""Recording: a Python function becomes a program.

Read ``tracer``, ``trace_state`` and ``entry`` first. ``numpy_protocols`` implements what NumPy asks
of a traced value, ``numpy_functions`` the functions without a record, ``mutation`` writes in place,
``control_flow`` the loops and branches of ``lt``, and ``checks`` refuses what cannot be recorded.
The modules called ``*_stand_ins`` replace functions that NumPy's protocols do not see.
"""
