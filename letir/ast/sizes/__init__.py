"""Symbolic sizes, and the questions that code asks of them."""
