"""Elementwise fusion: which binds form a group, and the ``fused`` binds made of groups."""
