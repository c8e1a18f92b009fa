"""Long programs on small arrays as tables of instructions, which one kernel executes."""
