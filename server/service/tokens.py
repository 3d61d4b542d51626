"""Listing, creating and revoking API tokens."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from server.auth.accounts import KINDS, Accounts, Token
from server.auth.last_uses import token_key
from server.auth.permissions import TOKEN, Actor, has_all, require_of_site
from server.config.model import ACTIONS, known_actions
from server.config.values import parse_duration
from server.errors import ConflictError, ForbiddenError, NotFoundError, SetupError, ValidationError
from server.schema.model import Schema
from server.schema.spelling import suggestion
from server.service.read import Caller

MAX_NAME_CHARS = 64
_NAME = re.compile(rf"(?!\.+$)[A-Za-z0-9_.-]{{1,{MAX_NAME_CHARS}}}")
NAME_RULE = f"must be 1 to {MAX_NAME_CHARS} letters, digits, -, _ or ., and not only dots"
if TYPE_CHECKING:
    from server.auth.directory import Directory

_FIELDS = ("name", "type", "permissions", "expires", "branchOnly")
TOO_MUCH_MESSAGE = "You can't create or revoke a token that can do more than you"


@dataclass(frozen=True, slots=True)
class ListedToken:
    """An API token. `changeable` is set if the caller may revoke it."""

    token: Token
    last_used: str | None
    changeable: bool
    maker: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class NewToken:
    """A request to create a token. `lifetime` is None if the token never expires."""

    name: str
    kind: str
    permissions: tuple[str, ...]
    lifetime: timedelta | None
    branch_only: bool


def list_tokens(directory: "Directory", caller: Caller) -> list[ListedToken]:
    """Return all tokens, without their secrets. Raises ForbiddenError if the caller may not list them."""
    require_of_site(caller.actor, TOKEN, "read", caller.state.schema)
    used, tokens = directory.accounts.last_uses.all(), directory.accounts.tokens()
    caller.budget.spend(len(tokens))
    return [
        ListedToken(
            token,
            used.get(token_key(token.name)),
            may_manage(caller.actor, token),
            _maker(directory, caller.actor, token),
        )
        for token in tokens
    ]


def _maker(directory: "Directory", actor: Actor, token: Token) -> Mapping[str, Any] | None:
    # The names of users are visible only to callers who may list users.
    kind, _, name = (token.maker or "").partition(":")
    if token.maker_id is None:
        return {"kind": kind, "name": name} if kind else None
    user = directory.users.get_cached(token.maker_id) if actor.may("user", "find") else None
    return {"kind": kind, "name": user.username if user else ""}


def create_token(directory: "Directory", caller: Caller, data: object) -> tuple[ListedToken, str]:
    """Create a token. Return the token and its secret.

    Raises ForbiddenError if the token would permit more than the caller may do, ConflictError if the name is
    already used, or ValidationError for invalid data.
    """
    require_of_site(caller.actor, TOKEN, "create", caller.state.schema)
    new = _read(data, caller.state.schema)
    if not _covers_kind(caller.actor, new.kind, new.permissions):
        raise ForbiddenError(TOO_MUCH_MESSAGE, actor=caller.actor.name)
    accounts, maker = directory.accounts, _token_of(directory.accounts, caller.actor)
    try:
        secret = accounts.create_token(
            new.name,
            new.kind,
            new.permissions,
            new.lifetime,
            branch_only=new.branch_only,
            # A user is also the maker of tokens that the user's tokens create.
            maker=maker.maker if maker and maker.maker_id is not None else caller.actor.name,
            ends_by=maker.expires_at if maker else None,
        )
    except SetupError as error:
        raise ConflictError(f'A token named "{new.name}" already exists; choose another name') from error
    made = accounts.find_token(secret)
    if made is None:
        raise ConflictError("The token has been revoked or has expired already")
    return ListedToken(made, None, True, _maker(directory, caller.actor, made)), secret


def _token_of(accounts: Accounts, actor: Actor) -> Token | None:
    kind, _, name = actor.name.partition(":")
    tokens = accounts.tokens() if kind == "token" else []
    return next((token for token in tokens if token.name == name), None)


def revoke_token(accounts: Accounts, caller: Caller, name: str) -> None:
    """Revoke a token.

    Raises NotFoundError, or ForbiddenError if the token permits more than the caller may do.
    """
    require_of_site(caller.actor, TOKEN, "revoke", caller.state.schema)
    token = next((token for token in accounts.tokens() if token.name == name), None)
    if token is None:
        raise NotFoundError("Token not found")
    if not may_manage(caller.actor, token):
        raise ForbiddenError(TOO_MUCH_MESSAGE, actor=caller.actor.name)
    accounts.revoke_token(name)


def may_manage(actor: Actor, token: Token) -> bool:
    return _covers_kind(actor, token.kind, token.permissions)


def _covers_kind(actor: Actor, kind: str, permissions: Iterable[str]) -> bool:
    if kind == "full-access":
        return actor.everything
    if kind == "read-only":
        return actor.everything or actor.reading
    return has_all(actor, permissions)


def is_token_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def check_permissions(kind: str, permissions: Sequence[str], schema: Schema) -> None:
    """Raise SetupError if a token of this kind can't have these permissions."""
    option = "--permission"
    if permissions and kind != "custom":
        what = f"a {kind} token can't have additional permissions"
        raise SetupError(option, None, what, "to set permissions, use --type custom")
    if kind == "custom" and not permissions:
        fix = "pass a permission, such as --permission article.find"
        raise SetupError(option, None, "a custom token requires at least one permission", fix)
    subjects = [*(t.singular for t in schema.content_types), *filter(None, ACTIONS)]
    for permission in permissions:
        subject, _, action = permission.rpartition(".")
        if subject not in subjects:
            fix = suggestion(subject, subjects) or "use the singular API id of a content type"
            raise SetupError(option, None, f'unknown content type "{subject}"', fix)
        known = known_actions(subject)
        if action not in known:
            fix = suggestion(action, known) or "use one of " + ", ".join(known)
            what = f'unknown action "{action}" in the permission for {subject}'
            raise SetupError(option, None, what, fix)


def _read(data: Any, schema: Schema) -> NewToken:
    if not isinstance(data, dict):
        raise ValidationError('The request body must look like {"data": {"name": "…", "type": "read-only"}}')
    for name in data:
        if name not in _FIELDS:
            raise _invalid(str(name)[:100], f"is not one of {', '.join(_FIELDS)}")
    name, kind = data.get("name"), data.get("type")
    permissions = data.get("permissions") or []
    if not isinstance(name, str) or not is_token_name(name):
        raise _invalid("name", NAME_RULE)
    if kind not in KINDS:
        raise _invalid("type", f"must be one of {', '.join(KINDS)}")
    if not isinstance(permissions, list) or not all(isinstance(one, str) for one in permissions):
        raise _invalid("permissions", "must be a list such as article.find")
    if not isinstance(data.get("branchOnly", False), bool):
        raise _invalid("branchOnly", "must be true or false")
    try:
        check_permissions(kind, permissions, schema)
    except SetupError as error:
        raise _invalid("permissions", f"are not valid: {error.message}") from error
    return NewToken(
        name, kind, tuple(permissions), _lifetime(data.get("expires")), data.get("branchOnly", False)
    )


def _lifetime(written: object) -> timedelta | None:
    if written is None:
        return None
    try:
        return parse_duration(written) if isinstance(written, str) else parse_duration("")
    except ValueError as error:
        raise _invalid("expires", "must be a duration such as 30d, 12h or 1y") from error


def _invalid(name: str, rule: str) -> ValidationError:
    message = f"{name} {rule}"
    row = {"path": [name], "message": message, "name": "ValidationError"}
    return ValidationError(message, {"errors": [row]})
