"""Shape, layout and creation."""
