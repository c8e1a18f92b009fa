"""peephole_rules."""
