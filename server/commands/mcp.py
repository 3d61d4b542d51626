"""`bifolio mcp`."""

import os
import sys
from pathlib import Path
from typing import BinaryIO

import click

from server.api.entrance import Entrance
from server.api.mcp.role_identities import BUILT_IN_ROLES, RoleIdentities
from server.api.mcp.stdio import serve
from server.api.wsgi_server import make_app
from server.auth.session_key import session_key
from server.config.model import Settings
from server.errors import SetupError, UnauthorizedError
from server.jobs.runner import Runner
from server.schema.spelling import suggestion
from server.service.opening import Mode, open_site
from server.site.background.jobs import CommitWrites
from server.tools.terminal import check_site, one_line_errors, site_option
from server.write.precondition import use_key


@click.command("mcp")
@site_option
@click.option(
    "--token-env",
    "token_variable",
    metavar="NAME",
    help="The environment variable that contains an API token.",
)
@click.option(
    "--as",
    "role",
    metavar="ROLE",
    help="A role in site.yaml, or full-access or read-only. No token is needed.",
)
@one_line_errors
def mcp(root: Path, token_variable: str | None, role: str | None) -> None:
    """Let an agent read and write the site, with the Model Context Protocol on standard input and output.

    An agent's program starts this command (docs/agents.md). No server is needed, but one may be running.
    Without --token-env or --as, the agent has the permissions of the role `public`.
    """
    check_site(root)
    authorization = _authorization(token_variable, role)
    source, target = _streams()
    opened = open_site(root, Mode.COMMAND)
    site, key = opened.site, session_key(root)
    use_key(key)
    identities = None
    if role is not None:
        _check_role(role, site.state.settings)
        identities = RoleIdentities(role, site.folder, site.state.settings, key=key)
    app = make_app(site, key, opened.past, identities=identities)
    if token_variable is not None:
        _check_token(token_variable, authorization, app)
    # If a server is also running, either process can make the commits.
    runner = Runner([CommitWrites(site, opened.timing)])
    runner.start()
    try:
        serve(app, authorization, opened.recorder.database, source, target)
    finally:
        runner.stop()
        site.committer.flush()


def _authorization(token_variable: str | None, role: str | None) -> str:
    """Return the Authorization header with the agent's token, or "" if no token is used.

    Raises SetupError if both arguments are given, or if the environment variable is not set.
    """
    if token_variable is None:
        return ""
    if role is not None:
        problem = "--token-env and --as can't be used together"
        raise SetupError("--token-env", None, problem, "use only one of them")
    token = os.environ.get(token_variable, "").strip()
    if not token:
        fix = "create a token with `bifolio token create NAME` and set the variable to it"
        raise SetupError("--token-env", None, f"the environment variable {token_variable} is not set", fix)
    return f"Bearer {token}"


def _check_token(token_variable: str, authorization: str, app: Entrance) -> None:
    try:
        app.identities.identify(authorization, app.site.state.settings)
    except UnauthorizedError as error:
        problem = f"the environment variable {token_variable} does not contain a valid token of this site"
        fix = "`bifolio token list` lists the tokens; create a new one with `bifolio token create NAME`"
        raise SetupError("--token-env", None, problem, fix) from error


def _check_role(role: str, settings: Settings) -> None:
    known = (*settings.roles, *BUILT_IN_ROLES)
    if role not in known:
        fix = suggestion(role, known) or f"use one of {', '.join(known)}"
        raise SetupError("--as", None, f'there is no role "{role}"', fix)


def _streams() -> tuple[BinaryIO, BinaryIO]:
    """Return standard input and output, and redirect other output to standard error."""
    target = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return sys.stdin.buffer, target
