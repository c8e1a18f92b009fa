"""``diff``: two programs compared bind by bind."""
