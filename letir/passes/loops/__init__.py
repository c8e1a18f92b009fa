"""Loop passes: loop-invariant code motion and unrolling."""
