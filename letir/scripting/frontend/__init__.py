"""Python source -> script terms."""
