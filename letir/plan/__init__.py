"""Plans: a program as a list of instructions on slots, which ``letir.executor`` runs.

Read ``plan`` first, then ``slot_allocation`` and ``instructions``. A plan that runs often becomes
a Python function: ``straight_line`` and ``step_writer``.
"""
