"""How to write what was probably meant by a value that can't be read."""
