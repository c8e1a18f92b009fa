"""Nodes of trees: classes of users, and results that a program stores in its arguments."""
