"""`bifolio redirects`."""

import sys
from pathlib import Path

import click

from server.auth.owner import OWNER
from server.errors import SetupError
from server.service.opening import Mode, open_site
from server.service.public_site.redirect_formats import FORMATS
from server.service.public_site.redirects import Redirects
from server.service.read import Caller
from server.tools.terminal import check_site, one_line_errors, printable, site_option


@click.command("redirects")
@site_option
@click.option(
    "--format",
    "name",
    type=click.Choice([*FORMATS]),
    default="json",
    show_default=True,
    help="The format of the redirects. For Apache, use htaccess.",
)
@click.option("--origin", metavar="URL", help="Print only the redirects for this host.")
@one_line_errors
def redirects(root: Path, name: str, origin: str | None) -> None:
    """Print redirects from former addresses of documents to their current addresses.

    The redirects come from aliases in files and from the git history (docs/redirects.md). Exits with status 1
    if aliases contradict each other. Such aliases are reported and left out.
    """
    check_site(root)
    opened = open_site(root, Mode.READ)
    settings = opened.site.state.settings
    if not settings.urls:
        fix = 'add urls to site.yaml, such as urls: {article: "https://example.org/articles/{slug}"}'
        raise SetupError("site.yaml", None, "no content type has a public URL", fix)
    found = Redirects(opened.past).list_redirects(Caller(opened.site.state, OWNER))
    format_ = FORMATS[name]
    if origin is None and not format_.several_hosts and len(found.origins) > 1:
        fix = "pass one of " + ", ".join(found.origins)
        raise SetupError("--origin", None, "there are redirects for several hosts", fix)
    wanted = None if origin is None else origin.rstrip("/").lower()
    text, left = format_.write(r for r in found.redirects if wanted in (None, r.origin))
    click.echo(text, nl=False)
    for redirect in left:
        what = f"{redirect.document.path}: {redirect.source} can't be written in the format {name}"
        click.echo(printable(f"bifolio: {what}, so it was left out"), err=True)
    for problem in found.problems:
        click.echo(printable(str(problem)), err=True)
    sys.exit(1 if found.problems else 0)
