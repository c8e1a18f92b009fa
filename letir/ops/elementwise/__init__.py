"""One result element per operand element."""
