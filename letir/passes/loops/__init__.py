"""Loop-invariant code motion, unrolling."""
