"""Implementation of the subcommands, without their command-line options."""
