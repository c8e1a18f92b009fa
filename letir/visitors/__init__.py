"""Traversals of programs: visitors, uses and definitions of locals, and substitution."""
