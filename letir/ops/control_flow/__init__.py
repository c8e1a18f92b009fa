"""Control flow: records that hold bodies (cond, while, fori, scan, map), and their rules."""
