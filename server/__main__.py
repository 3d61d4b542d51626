"""`python -m server` is the same as the `bifolio` command."""

from server.commands.cli import main

if __name__ == "__main__":
    main(prog_name="bifolio")
