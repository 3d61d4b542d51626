"""`bifolio types`, which generates TypeScript types for a site."""

import sys
from pathlib import Path

import click

from server.config.reader import read_settings
from server.errors import SetupError
from server.schema.load import read_content_types
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
    elif check:
        _refuse_old(out, made)
    else:
        _write(out, made)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(str(path), None, f"can't be read: {error.strerror}") from error


def _refuse_old(path: Path, made: bytes) -> None:
    """Raise SetupError if the file that contains the generated types is out of date."""
    there = _read(path)
    if there == made:
        click.echo(f"{path} is up to date")
        return
    fix = f"run `bifolio types --out {path}`"
    if there is None:
        raise SetupError(str(path), None, "the file does not exist", fix)
    lines = zip([*there.splitlines(), b""], [*made.splitlines(), b""], strict=False)
    line = next((i for i, (old, new) in enumerate(lines, start=1) if old != new), None)
    raise SetupError(str(path), line, "is out of date", fix)


def _write(path: Path, made: bytes) -> None:
    # An unchanged file is not written, because this would trigger programs that watch it.
    if _read(path) == made:
        click.echo(f"{path} is up to date")
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made)
    except OSError as error:
        raise SetupError(str(path), None, f"can't be written: {error.strerror}") from error
    click.echo(f"wrote {path}")
