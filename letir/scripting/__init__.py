"""Gradient scripts: functions whose inner function is their backward pass, see docs/scripting.md.

``frontend`` reads Python source into script terms, ``lowering`` turns these into programs, and
``scripts``, ``units`` and ``operations`` are what users call.
"""
