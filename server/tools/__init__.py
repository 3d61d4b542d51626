"""Implementation of commands, independent of the command line."""
