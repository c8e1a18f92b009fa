"""Checks against baked values: hidden state, baked constants, symbolic sizes, refused functions."""
