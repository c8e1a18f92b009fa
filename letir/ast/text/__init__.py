"""Programs as text and in files."""
