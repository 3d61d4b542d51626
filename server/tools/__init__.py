"""Implementation of the `bifolio` subcommands, without their command-line options."""
