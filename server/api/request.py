"""What every handler needs of a request: state, parameters, actor, body; and JSON as a response."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from flask import Request, Response

from server.api.response import JSON
from server.auth.accounts import Accounts
from server.auth.logins import Logins
from server.auth.permissions import Actor
from server.auth.sessions import Sessions
from server.auth.users import Users
from server.config.model import Settings
from server.errors import ForbiddenError, UnauthorizedError, ValidationError
from server.formats.json_reader import read_json
from server.formats.tree import SyntaxProblem
from server.index.user_index import UserIndex
from server.query import qs
from server.site.site import State

FORM = "application/x-www-form-urlencoded"
FORMAT = "Strapi-Response-Format"  # the header that asks for the previous format
STATE = "quire.state"  # the key of a WSGI environ that holds the state which the request is answered from


def state_of(request: Request) -> State:
    """The one state of a request, taken at the entrance (`server.api.front`)."""
    return cast(State, request.environ[STATE])


def parameters(request: Request) -> dict[str, object]:
    """The query string as nested values. Raises ValidationError."""
    return parse_query(request.environ.get("QUERY_STRING", ""))


def parse_query(raw: str) -> dict[str, object]:
    """A query string, as WSGI has it, as nested values. Raises ValidationError."""
    try:
        return qs.parse(raw if raw.isascii() else raw.encode("latin-1").decode())
    except UnicodeError as error:
        raise ValidationError("The query is not UTF-8") from error


def wsgi_text(raw: str) -> str:
    """A part of a path, as WSGI has it (each character stands for a byte), as text."""
    return raw if raw.isascii() else raw.encode("latin-1").decode(errors="replace")


@lru_cache(maxsize=16)
def _public(permissions: frozenset[str]) -> Actor:
    return Actor("public", permissions)


@dataclass(frozen=True, slots=True)
class Identities:
    """Everything that can say who a request is from: tokens, users, sessions; and users as documents."""

    accounts: Accounts
    users: Users
    sessions: Sessions
    user_index: UserIndex
    logins: Logins

    @classmethod
    def of(cls, accounts: Accounts, sessions: Sessions) -> "Identities":
        """Who the accounts of a site know."""
        users = Users(accounts)
        user_index = UserIndex(users, accounts.root)
        return cls(accounts, users, sessions, user_index, Logins(accounts.engine))

    def actor(self, request: Request, *, ended: bool = False) -> Actor:
        """Who sends a request; see `identify`."""
        settings = state_of(request).settings
        return self.identify(request.headers.get("Authorization", ""), settings, ended=ended)

    def permit(self, request: Request, subject: str, action: str, *, ended: bool = False) -> Actor:
        """Who sends a request. Raises ForbiddenError where that one may not do an action on a subject."""
        actor = self.actor(request, ended=ended)
        if not actor.may(subject, action):
            raise ForbiddenError()
        return actor

    def identify(self, authorization: str, settings: Settings, *, ended: bool = False) -> Actor:
        """Who an Authorization header speaks for: a token, a user, or else the public.

        Raises UnauthorizedError for a token that is not known, expired or revoked, even where the
        public may do what is asked. `ended` takes a session that a changed password has ended.
        """
        scheme, _, credentials = authorization.partition(" ")
        text = credentials and credentials.strip()
        if not text or scheme.lower() != "bearer":
            return _public(settings.roles["public"])
        if text.count(".") == 2:
            return self._user(text, settings, ended=ended)
        token = self.accounts.find_token(text)
        if token is None:
            raise UnauthorizedError()
        return token.actor()

    def _user(self, text: str, settings: Settings, *, ended: bool) -> Actor:
        if settings.refresh_tokens:
            known = self.sessions.read_access(text)
            claims = known[:2] if known and self.logins.get(known[2]) else None
        else:
            claims = self.sessions.read(text)
        user = self.users.get(claims[0]) if claims else None
        if claims is None or user is None or user.blocked:
            raise UnauthorizedError()
        if settings.confirm_email and not user.confirmed:
            raise UnauthorizedError()
        if user.sessions != claims[1] and not ended:
            raise UnauthorizedError()
        return Actor(f"user:{user.id}", settings.roles.get(user.role, frozenset()), user_id=user.id)


def is_v4(environ: Mapping[str, Any]) -> bool:
    """Whether the previous format is asked for (spec.md 4.4, 9)."""
    return str(environ.get("HTTP_STRAPI_RESPONSE_FORMAT", "")).lower() == "v4"


def read_body(request: Request) -> object:
    """The body of a request as a tree, from JSON or a form in bracket notation; None where it has neither.

    Raises ValidationError.
    """
    form = request.mimetype == FORM
    if not form and not request.is_json:
        return None
    data = request.get_data(cache=False, parse_form_data=False)
    if not data.strip():
        return None
    try:
        return qs.parse(data.decode()) if form else read_json(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValidationError(f"The body is not UTF-8 at byte {error.start}") from error
    except SyntaxProblem as error:
        line = f", line {error.line}" if error.line else ""
        raise ValidationError(f"The body can't be read{line}: {error.message}") from error


def answer(body: bytes, status: int = 200, cache_control: str = "") -> Response:
    """JSON bytes as a response. `cache_control`: where it is not what `server.api.response` makes it."""
    headers = {"Cache-Control": cache_control} if cache_control else None
    return Response(body, status, headers, content_type=JSON)
