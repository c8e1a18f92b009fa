"""Symbolic sizes, and comparisons and reads of their values."""
