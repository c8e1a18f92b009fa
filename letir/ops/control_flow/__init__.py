"""Cond, while, fori, scan, map: records that hold bodies, with vjp / jvp / batch beside each."""
