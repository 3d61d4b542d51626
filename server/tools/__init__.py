"""Implementation of the subcommands of `bifolio`, without their command-line options."""
