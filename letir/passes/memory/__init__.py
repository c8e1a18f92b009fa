"""Alias analysis and in-place updates."""
