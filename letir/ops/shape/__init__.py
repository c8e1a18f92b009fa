"""Operations on shapes: reshape, broadcast, transpose, join, split, pad, and array creation."""
