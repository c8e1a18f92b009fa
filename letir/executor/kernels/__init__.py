"""Kernels in plans: groups of binds as calls of compiled functions."""
