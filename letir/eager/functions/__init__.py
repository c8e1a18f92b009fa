"""User Functions with forward and backward."""
