"""pattern_rewrite."""
