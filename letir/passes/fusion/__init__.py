"""Elementwise fusion."""
