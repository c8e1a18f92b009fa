"""How a record is made: READ FIRST."""
