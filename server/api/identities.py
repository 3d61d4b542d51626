"""Who a request is from: a token, a user who has logged in, or else the public.

The accounts are opened for the first request that needs them. A request of the public that has nothing to
do with users needs none, so a worker that only answers such requests never loads SQLAlchemy.
"""

import logging
import time
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, cast

from server.api.environ import STATE
from server.auth.database.file import OpenedFile, is_server
from server.auth.owner import OWNER, is_session
from server.auth.owner import PREFIX as OWNER_PREFIX
from server.auth.permissions import Actor
from server.config.model import Settings
from server.errors import ForbiddenError, SetupError, UnauthorizedError, UnavailableError
from server.index.user_index import UserIndex

if TYPE_CHECKING:
    from flask import Request

    from server.auth.accounts import Accounts
    from server.auth.directory import Directory
    from server.auth.logins import Logins
    from server.auth.sessions import Sessions
    from server.auth.users import Users

log = logging.getLogger("quire")

COOKIE_SCHEME = (
    "Studio"  # stands for `Bearer` where the credentials came in the cookie (server.api.studio.cookie)
)
UNAVAILABLE_S = 1.0  # for so long a database elsewhere that could not be opened is not asked again


@dataclass(frozen=True, slots=True)
class _Opened:
    directory: "Directory"
    user_index: UserIndex

    @property
    def file(self) -> OpenedFile:
        """The file of the database."""
        return self.directory.accounts.file


class Identities:
    """Everything that can say who a request is from: tokens, users, sessions; and users as documents.

    Safe to use from many threads. To be made after a fork, since a database is not shared by processes.
    """

    def __init__(
        self, root: Path, settings: Settings, accounts: "Accounts | None" = None, key: str = ""
    ) -> None:
        """`accounts`: those of the site at `root`, where they are open already. `key`: that of its sessions,
        so that all processes of a server have the same, whatever becomes of its file.
        """
        self._root, self._settings, self._accounts, self._key = root, settings, accounts, key
        self._lock = RLock()
        self._opened: _Opened | None = None
        self._unavailable_until = 0.0

    def directory(self) -> "Directory":
        """Whom the site knows. Raises UnavailableError where the accounts can't be read."""
        return self._current().directory

    def user_index(self) -> UserIndex:
        """The users as documents. Raises UnavailableError."""
        return self._current().user_index

    def _current(self) -> "_Opened":
        """What is open; opened now for the first time, or since somebody has removed the database."""
        opened = self._opened
        if opened is not None and opened.file.is_there():
            return opened
        with self._lock:
            if self._opened is None or not self._opened.file.is_there():
                if time.monotonic() < self._unavailable_until:
                    raise UnavailableError()
                accounts = self._accounts if self._opened is None else None
                try:
                    before = self._opened
                    self._opened = _open(self._root, self._settings, accounts, self._key)
                except SetupError as error:
                    log.error("%s", error)
                    if is_server(self._settings.accounts):
                        self._unavailable_until = time.monotonic() + UNAVAILABLE_S
                    raise UnavailableError() from error
                if before is not None:
                    before.file.close()
            return self._opened

    @property
    def users(self) -> "Users":
        """The users of the site."""
        return self.directory().users

    @property
    def logins(self) -> "Logins":
        """The logins of these users."""
        return self.directory().logins

    @property
    def sessions(self) -> "Sessions":
        """What makes and reads the tokens of users."""
        return self.directory().sessions

    def actor(self, request: "Request", *, ended: bool = False) -> Actor:
        """Who sends a request; see `identify`."""
        settings = request.environ[STATE].settings
        return self.identify(request.headers.get("Authorization", ""), settings, ended=ended)

    def permit(self, request: "Request", subject: str, action: str, *, ended: bool = False) -> Actor:
        """Who sends a request. Raises ForbiddenError where that one may not do an action on a subject."""
        actor = self.actor(request, ended=ended)
        if not actor.may(subject, action):
            raise ForbiddenError()
        return actor

    def signature(self, actor: Actor) -> tuple[str, str]:
        """The name and e-mail address that an actor signs with; a token, and the public, have no address.

        The machine's owner signs with those that commits are made in the name of.
        """
        if actor is OWNER:
            return "", ""
        user = self.users.get(actor.user_id) if actor.user_id is not None else None
        return (user.username, user.email) if user else (actor.name.removeprefix("token:"), "")

    def identify(self, authorization: str, settings: Settings, *, ended: bool = False) -> Actor:
        """Who an Authorization header speaks for: a token, a user, or else the public.

        Raises UnauthorizedError for a token that is not known, expired or revoked, even where the
        public may do what is asked. `ended` takes a session that a changed password has ended.
        """
        scheme, _, credentials = authorization.partition(" ")
        text = credentials and credentials.strip()
        if text and scheme == COOKIE_SCHEME:
            return self._in_studio(text, settings)
        if not text or scheme.lower() != "bearer":
            return _public(settings.roles["public"])
        if text.count(".") == 2:
            return self._user(self._claims(text, settings), settings, ended=ended)
        token = self.directory().accounts.find_token(text)
        if token is None:
            raise UnauthorizedError()
        return token.actor()

    def _in_studio(self, text: str, settings: Settings) -> Actor:
        """Who the cookie of the studio speaks for. Raises UnauthorizedError."""
        if text.startswith(OWNER_PREFIX):
            if not is_session(self._root, text, settings.session.total_seconds()):
                raise UnauthorizedError()
            return OWNER
        return self._user(self._of_login(self.sessions.read_studio(text)), settings)

    def _claims(self, text: str, settings: Settings) -> tuple[int, int] | None:
        """(user id, sessions number) of the token that a request carries, or None."""
        if settings.refresh_tokens:
            return self._of_login(self.sessions.read_access(text))
        return self.sessions.read(text)

    def _of_login(self, known: tuple[int, int, str] | None) -> tuple[int, int] | None:
        return known[:2] if known and self.logins.get(known[2]) else None

    def _user(self, claims: tuple[int, int] | None, settings: Settings, *, ended: bool = False) -> Actor:
        user = self.users.get(claims[0]) if claims else None
        if claims is None or user is None or user.blocked:
            raise UnauthorizedError()
        if settings.confirm_email and not user.confirmed:
            raise UnauthorizedError()
        if user.sessions != claims[1] and not ended:
            raise UnauthorizedError()
        return Actor(f"user:{user.id}", settings.roles.get(user.role, frozenset()), user_id=user.id)


@lru_cache(maxsize=16)
def _public(permissions: frozenset[str]) -> Actor:
    return Actor("public", permissions)


def _open(root: Path, settings: Settings, accounts: "Accounts | None", key: str) -> _Opened:
    """Open the accounts of a site. Raises SetupError."""
    load = import_module("server.auth.directory").open_directory
    directory = cast("Directory", load(root, settings, accounts, key))
    return _Opened(directory, UserIndex(directory.users, root))
