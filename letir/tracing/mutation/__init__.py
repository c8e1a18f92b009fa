"""In-place writes: views, memory order, written arguments."""
