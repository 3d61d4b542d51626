"""Tools of the commands that do not depend on the command line."""
