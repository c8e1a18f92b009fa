"""Writes in place: views, memory order, arguments."""
