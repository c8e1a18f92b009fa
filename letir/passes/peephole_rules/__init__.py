"""Rules that name operations: each rewrites particular operations into others.

``driver`` tries the rules of ``algebra``, ``movement``, ``selection`` and ``fast_math`` on each
bind; the other files are passes of one rule. All other passes do not name operations: they ask the
records.
"""
