"""`bifolio types`."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from server.config.model import Settings
from server.config.reader import read_settings
from server.errors import SetupError
from server.schema.load import read_content_types
from server.schema.model import Schema
from server.tools.generated_files import update_file
from server.tools.python_types import write_python_module
from server.tools.terminal import check_site, one_line_errors, site_option
from server.tools.typescript import write_module
from server.tools.zod import write_zod_module

# For each language: its flag, and the function that generates the file.
_LANGUAGES: Mapping[str | None, tuple[str, Callable[[Schema, Settings], str]]] = {
    None: ("", write_module),
    "zod": ("--zod ", write_zod_module),
    "python": ("--python ", write_python_module),
}


@click.command("types")
@site_option
@click.option(
    "--out",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write, such as bifolio.ts or bifolio_client.py. [default: standard output]",
)
@click.option(
    "--check",
    "check",
    is_flag=True,
    help="Write nothing, but exit with status 1 if the file in --out is out of date.",
)
@click.option("--zod", "language", flag_value="zod", help="Add zod schemas, which validate responses.")
@click.option("--python", "language", flag_value="python", help="Generate a typed Python client instead.")
@one_line_errors
def types(root: Path, out: Path | None, check: bool, language: str | None) -> None:
    """Generate TypeScript or Python types for all content types and components."""
    check_site(root)
    if check and out is None:
        raise SetupError(
            "--check",
            None,
            "can only be used together with --out",
            "pass the path of the generated file with --out",
        )
    flag, write = _LANGUAGES[language]
    made = write(read_content_types(root), read_settings(root)).encode()
    if out is None:
        sys.stdout.buffer.write(made)
    else:
        command = f"bifolio types {flag}--out {out}"
        click.echo(update_file(out.parent, out.name, made, command, check=check))
