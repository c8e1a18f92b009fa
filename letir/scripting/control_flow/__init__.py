"""``if``, ``while`` and ``for`` in scripts."""
