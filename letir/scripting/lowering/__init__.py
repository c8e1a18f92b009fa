"""From script terms to programs."""
