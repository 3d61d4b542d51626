"""`bifolio token`, `bifolio user` and `bifolio key`."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from server.auth.accounts import KINDS, Accounts
from server.auth.session_key import rotate_key
from server.auth.user import MIN_NAME_CHARS, MIN_PASSWORD_CHARS, User, violated_rule
from server.auth.users import Users
from server.config.model import Settings
from server.config.reader import read_settings
from server.config.values import parse_duration
from server.errors import DuplicateUserError, SetupError
from server.schema.load import read_content_types
from server.schema.spelling import suggestion
from server.service.tokens import NAME_RULE, check_permissions, is_token_name
from server.tools.terminal import as_setup_error, check_site, one_line_errors, site_option


@contextmanager
def opened_accounts(root: Path) -> Iterator[tuple[Accounts, Settings]]:
    """Open a site's accounts database. Raises SetupError if the folder is not a valid site."""
    check_site(root)
    settings = read_settings(root)
    accounts = Accounts(root, settings.accounts)
    try:
        yield accounts, settings
    finally:
        accounts.close()


@click.group()
def token() -> None:
    """Create, list and revoke API tokens."""


@token.command("create")
@click.argument("name")
@site_option
@click.option(
    "--type",
    "kind",
    type=click.Choice(KINDS),
    required=True,
    help="What the token allows; custom requires --permission.",
)
@click.option(
    "--permission",
    "permissions",
    multiple=True,
    metavar="SUBJECT.ACTION",
    help="A permission for a custom token; can be repeated.",
)
@click.option(
    "--expires",
    metavar="SPAN",
    help="Let the token expire after a duration such as 30d, 12h or 1y. [default: never]",
)
@click.option(
    "--branch-only",
    is_flag=True,
    help="Let the token write only to branches; it can't merge or delete them.",
)
@one_line_errors
def create_token(
    root: Path, name: str, kind: str, permissions: tuple[str, ...], expires: str | None, branch_only: bool
) -> None:
    """Create a token and print it. Only its hash is stored, so it can't be shown again."""
    check_site(root)
    if not is_token_name(name):
        raise SetupError("NAME", None, f'{NAME_RULE} (found "{name}")', "choose another name")
    check_permissions(kind, permissions, read_content_types(root))
    try:
        span = parse_duration(expires) if expires else None
    except ValueError:
        what = f'must be a duration (found "{expires}")'
        raise SetupError("--expires", None, what, "write a duration such as 30d, 12h or 1y") from None
    with opened_accounts(root) as (accounts, _):
        made = accounts.create_token(name, kind, permissions, span, branch_only=branch_only)
    click.echo(f"Token {name} ({kind}). Copy it now: it will not be shown again.", err=True)
    click.echo(made)


@token.command("list")
@site_option
@one_line_errors
def list_tokens(root: Path) -> None:
    """List tokens with their permissions and expiry."""
    with opened_accounts(root) as (accounts, _):
        for found in accounts.tokens():
            until = f"until {found.expires_at}" if found.expires_at else "for ever"
            state = " (expired)" if found.expired else ""
            writes = "  writes only to branches" if found.branch_only else ""
            may = " ".join(found.permissions)
            click.echo(f"{found.name}  {found.kind}  {until}{state}{writes}" + (f"  {may}" if may else ""))


@token.command("revoke")
@click.argument("name")
@site_option
@one_line_errors
def revoke_token(root: Path, name: str) -> None:
    """Revoke a token. Requests that use it are rejected from now on."""
    with opened_accounts(root) as (accounts, _):
        known = [found.name for found in accounts.tokens()]
        done = accounts.revoke_token(name)
    if not done:
        fix = suggestion(name, known) or "list all with `bifolio token list`"
        raise SetupError("token", None, f'unknown token "{name}"', fix)
    click.echo(f"revoked {name}")


@click.group()
def user() -> None:
    """Create, list and block users; set roles and passwords."""


@user.command("create")
@click.argument("username")
@click.argument("email")
@site_option
@click.option(
    "--role",
    default="authenticated",
    show_default=True,
    help="The user's role, which must be defined in site.yaml.",
)
@click.option("--password", help="The user's password. [default: ask for it]")
@one_line_errors
def create_user(root: Path, username: str, email: str, role: str, password: str | None) -> None:
    """Create a user whose e-mail address counts as confirmed."""
    with opened_accounts(root) as (accounts, settings):
        _check_role(settings, role)
        _check_field("username", username, MIN_NAME_CHARS)
        _check_field("email", email)
        chosen = _ask_password(password)
        users, taken = (
            Users(accounts),
            f"the user name {username} or the e-mail address {email} is already taken",
        )
        with as_setup_error("user"):
            try:
                made = users.create(username, email, chosen, role=role, confirmed=True)
            except DuplicateUserError as error:
                fix = "list all users with `bifolio user list`"
                raise SetupError("user", None, taken, fix) from error
    click.echo(f"created {made.username} ({made.email}), {made.role}")


@user.command("list")
@site_option
@one_line_errors
def list_users(root: Path) -> None:
    """List users with their e-mail addresses and roles."""
    with opened_accounts(root) as (accounts, _):
        for found in Users(accounts).all():
            notes = [] if found.confirmed else ["not confirmed"]
            notes += ["blocked"] if found.blocked else []
            shown = f"  ({', '.join(notes)})" if notes else ""
            click.echo(f"{found.id}  {found.username}  {found.email}  {found.role}{shown}")


@user.command("block")
@click.argument("username")
@site_option
@click.option("--undo", is_flag=True, help="Unblock the user instead.")
@one_line_errors
def block_user(root: Path, username: str, undo: bool) -> None:
    """Block a user and end the user's sessions."""
    _change(root, username, {"blocked": not undo})
    click.echo(f"{'unblocked' if undo else 'blocked'} {username}")


@user.command("role")
@click.argument("username")
@click.argument("role")
@site_option
@one_line_errors
def give_role(root: Path, username: str, role: str) -> None:
    """Change a user's role."""
    check_site(root)
    _check_role(read_settings(root), role)
    _change(root, username, {"role": role})
    click.echo(f"{username} has the role {role}")


@user.command("password")
@click.argument("username")
@site_option
@click.option("--password", help="The user's password. [default: ask for it]")
@one_line_errors
def set_password(root: Path, username: str, password: str | None) -> None:
    """Change a user's password and end the user's sessions."""
    _change(root, username, {"password": _ask_password(password)})
    click.echo(f"{username} has a new password")


def _ask_password(password: str | None) -> str:
    password = password or click.prompt("Password", hide_input=True, confirmation_prompt=True)
    _check_field("password", password, MIN_PASSWORD_CHARS)
    return str(password)


def _check_field(name: str, value: str, min_chars: int = 1) -> None:
    broken = violated_rule(name, value, min_chars)
    if broken:
        raise SetupError("user", None, f"{name} {broken}")


def _check_role(settings: Settings, role: str) -> None:
    if role not in settings.roles or role == "public":
        fix = suggestion(role, settings.roles) or "use a role defined in site.yaml"
        raise SetupError("role", None, f'unknown role "{role}"', fix)


def _change(root: Path, username: str, values: dict[str, Any]) -> User:
    with opened_accounts(root) as (accounts, _):
        users = Users(accounts)
        found = users.find(username)
        if found is None:
            fix = (
                suggestion(username, [u.username for u in users.all()]) or "list all with `bifolio user list`"
            )
            raise SetupError("user", None, f'unknown user "{username}"', fix)
        with as_setup_error("user"):
            changed = users.update(found.id, values)
        assert changed is not None
        return changed


@click.group()
def key() -> None:
    """Replace the key that signs sessions."""


@key.command("rotate")
@site_option
@click.option(
    "--grace",
    metavar="SPAN",
    default="1d",
    show_default=True,
    help="How long existing sessions stay valid, such as 1d. With 0, they end when servers restart.",
)
@one_line_errors
def rotate(root: Path, grace: str) -> None:
    """Create a new key for signing sessions. Servers use it after a restart."""
    check_site(root)
    try:
        span = parse_duration(grace).total_seconds() if grace != "0" else 0.0
    except ValueError:
        what = f'must be a duration (found "{grace}")'
        raise SetupError("--grace", None, what, "write a duration such as 1d, 12h or 0") from None
    rotate_key(root, span)
    kept = f"existing sessions stay valid for {grace}" if span else "all existing sessions end"
    click.echo(f"created a new key; {kept}. Restart the site's servers to use it.")
