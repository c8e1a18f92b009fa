"""Gradient plans of jitted functions on Variables: loaded by the first call that needs one."""
