"""``rewrite``: patterns and replacements written by users."""
