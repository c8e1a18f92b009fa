"""How the records of operations are made: read this room first, ``records.py`` before the rest."""
