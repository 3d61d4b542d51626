"""Entry point for `python -m server`, which runs the `bifolio` command."""

from server.commands.cli import main

if __name__ == "__main__":
    main(prog_name="bifolio")
