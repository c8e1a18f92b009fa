"""Gradient plans of jitted functions on Variables."""
