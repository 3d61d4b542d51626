"""`bifolio types`, which generates TypeScript types for a site."""

import sys
from pathlib import Path

import click

from server.config.reader import read_settings
from server.errors import SetupError
from server.schema.load import read_content_types
from server.tools.generated_files import update_file
from server.tools.terminal import check_site, one_line_errors, site_option
from server.tools.typescript import write_module


@click.command("types")
@site_option
@click.option(
    "--out",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write, such as bifolio.ts. [default: standard output]",
)
@click.option(
    "--check",
    "check",
    is_flag=True,
    help="Write nothing, but exit with status 1 if the file in --out is out of date.",
)
@one_line_errors
def types(root: Path, out: Path | None, check: bool) -> None:
    """Generate TypeScript types for all content types and components."""
    check_site(root)
    if check and out is None:
        raise SetupError(
            "--check", None, "can only be used together with --out", "pass the file to check with --out"
        )
    made = write_module(read_content_types(root), read_settings(root)).encode()
    if out is None:
        sys.stdout.buffer.write(made)
    else:
        update_file(out, made, f"bifolio types --out {out}", check=check)
