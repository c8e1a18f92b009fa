"""From Python source to script terms."""
