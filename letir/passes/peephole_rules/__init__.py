"""The room of rules that name operations: each rewrites particular operations into others.

``driver`` tries the rules of ``algebra``, ``movement``, ``selection`` and ``fast_math`` on each
bind; the other files are passes of one rule. Passes about programs in general ask records.
"""
