"""What would bake a number into the program."""
