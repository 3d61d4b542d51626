"""`python -m server` is the same as the `quire` command."""

from server.commands.cli import main

if __name__ == "__main__":
    main(prog_name="quire")
