"""`bifolio schema`."""

import os
import shlex
from pathlib import Path

import click

from server.errors import SetupError
from server.schema.load import read_content_types
from server.schema.model import Schema
from server.tools.generated_files import read_file, require_no_link, update_file, update_folder
from server.tools.json_schemas import COMMENT, FORMATS, document_schemas
from server.tools.terminal import check_site, one_line_errors, site_option
from server.tools.vscode_settings import SETTINGS_PATH, merge_settings, schema_associations


@click.command("schema")
@site_option
@click.option(
    "--json-schema",
    "folder",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder for the JSON Schemas, such as schemas.",
)
@click.option(
    "--vscode",
    is_flag=True,
    help=f"Also associate the JSON Schemas with the site's files, in {SETTINGS_PATH}.",
)
@click.option(
    "--check",
    is_flag=True,
    help="Write nothing, but exit with status 1 if a file is out of date.",
)
@one_line_errors
def schema(root: Path, folder: Path, vscode: bool, check: bool) -> None:
    """Generate JSON Schemas for the files of documents, for editors and linters.

    For each content type, there are three JSON Schemas (2020-12): json/TYPE.json for JSON documents,
    yaml/TYPE.json for YAML documents, and front-matter/TYPE.json for the front matter of Markdown.
    """
    check_site(root)
    types = read_content_types(root)
    command = f"bifolio schema --json-schema {shlex.quote(str(folder))}" + (" --vscode" if vscode else "")
    made = {path: text.encode() for path, text in document_schemas(types).items()}
    settings = _vscode_settings(root, folder, types) if vscode else None
    outdated = [path for path in _generated_schemas(folder) if path not in made]
    written, deleted = update_folder(folder, made, outdated, command, check=check)
    if written or deleted:
        gone = f", deleted {deleted}" if deleted else ""
        click.echo(f"wrote {written} of {len(made)} JSON Schemas in {folder}{gone}")
    else:
        click.echo(f"{folder} is up to date")
    if settings == b"":
        click.echo(f"{SETTINGS_PATH}: nothing to write, because all types are in Markdown or MDX files only")
    elif settings is not None:
        click.echo(update_file(root, SETTINGS_PATH, settings, command, check=check))


def _generated_schemas(folder: Path) -> list[str]:
    found = [path for format_ in FORMATS for path in sorted((folder / format_).glob("*.json"))]
    ours = (path for path in found if path.is_file() and COMMENT.encode() in (read_file(path) or b""))
    return [path.relative_to(folder).as_posix() for path in ours]


def _vscode_settings(root: Path, folder: Path, types: Schema) -> bytes:
    relative = os.path.relpath(folder.resolve(), root.resolve())
    if relative.startswith(".."):
        fix = "use a folder inside the site"
        raise SetupError("--vscode", None, f"the folder {folder} is outside the site", fix)
    require_no_link(root, SETTINGS_PATH)
    there = read_file(root / SETTINGS_PATH)
    try:
        text = None if there is None else there.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SetupError(SETTINGS_PATH, None, "is not UTF-8", "save the file as UTF-8") from error
    if text is None and not any(schema_associations(types, Path(relative).as_posix())):
        return b""
    return merge_settings(text, types, Path(relative).as_posix()).encode()
