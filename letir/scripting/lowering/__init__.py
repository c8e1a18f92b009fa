"""Script terms -> programs."""
