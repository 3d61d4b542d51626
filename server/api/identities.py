"""Identification of the actor who sends a request: an API token, a signed-in user, the owner, or the public.

The accounts database is opened only when a request needs it. A worker that receives only public requests
never opens it, and never imports the code for accounts.
"""

import logging
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, cast

from server.auth.owner import OWNER, is_session
from server.auth.owner import SESSION_PREFIX as OWNER_PREFIX
from server.auth.permissions import TOKEN_PREFIX, Actor
from server.config.model import Settings
from server.database.address import is_server
from server.database.outage import Outage, reason_of
from server.errors import NeedsThreadPool, SetupError, UnauthorizedError, UnavailableError
from server.index.user_index import UserIndex
from server.site.folder import SiteFolder

if TYPE_CHECKING:
    from server.auth.accounts import Accounts
    from server.auth.directory import Directory
    from server.auth.json_web_tokens import JsonWebTokens
    from server.auth.logins import Logins
    from server.auth.users import Users

log = logging.getLogger("bifolio")

NO_SCHEME_MESSAGE = "Write Bearer before the token: Authorization: Bearer bifolio_…"
# the authorization scheme that `server.api.studio.cookie` uses internally for the token from the studio's
# cookie
COOKIE_SCHEME = "Studio"


@dataclass(frozen=True, slots=True)
class _Opened:
    directory: "Directory"
    user_index: UserIndex

    @property
    def is_current(self) -> bool:
        """Whether the open database file is still the file on disk. Returns False if the file was removed or
        replaced.
        """
        return self.directory.accounts.is_current


class Identities:
    """The site's tokens, users and sessions, which are used to identify actors. The users can also be read as
    documents (`user_index`).

    Thread-safe. Because processes can't share a database connection, each process must create its own
    `Identities` after it was forked.
    """

    def __init__(
        self, folder: SiteFolder, settings: Settings, accounts: "Accounts | None" = None, key: str = ""
    ) -> None:
        """If the accounts database is already open, pass it as `accounts`.

        `key` is the key that signs session tokens. It is passed so that all processes of a server use the
        same key, even if the key file changes while the server is running.
        """
        self._folder, self._settings, self._accounts, self._key = folder, settings, accounts, key
        self._lock = RLock()
        self._failure = ""  # why the database file could not be opened at the last attempt
        self._opened: _Opened | None = None
        self._outage = Outage(self._open, "the accounts database")

    def directory(self) -> "Directory":
        """Return the services for the site's accounts. If the accounts database is not open yet, open it
        first. Raises UnavailableError.
        """
        return self._current().directory

    def user_index(self) -> UserIndex:
        """Return the index from which users are read as documents. Raises UnavailableError."""
        return self._current().user_index

    @property
    def are_open(self) -> bool:
        """Whether the accounts database is already open. If it is not, the first access will be slow."""
        return self._opened is not None

    @property
    def are_read_only(self) -> bool:
        """Whether the open accounts database is read-only, because its server has rejected a write."""
        opened = self._opened
        return opened is not None and opened.directory.accounts.is_read_only

    def changed(self, key: str) -> None:
        """Remove the account with this cache key from the cache. If `key` is "", mark all cached accounts as
        outdated.
        """
        opened = self._opened
        if opened is not None:
            known = opened.directory.accounts.known
            known.forget(key) if key else known.expire()

    def _current(self) -> "_Opened":
        """Return the open accounts. If the accounts are not open yet, or if the database file was replaced,
        open them first. Raises UnavailableError.
        """
        opened = self._opened
        if opened is not None and opened.is_current:
            return opened
        self._outage.check()
        with self._lock:
            # Another thread may have failed to open the accounts while this thread was waiting for the lock.
            self._outage.check()
            if not self._settings.accounts and self._folder.is_gone():
                raise UnavailableError()  # `server.site.watch` logs the cause.
            try:
                opened = self._open()
            except SetupError as error:
                if is_server(self._settings.accounts):
                    self._outage.begin(reason_of(error.__cause__ or error))
                else:
                    self._note_failure(str(error))
                raise UnavailableError() from error
            self._note_failure("")
            return opened

    def _note_failure(self, reason: str) -> None:
        """Log why the database file can't be opened, and when it can be opened again, each only once."""
        if reason and reason != self._failure:
            log.error("%s", reason)
        elif self._failure and not reason:
            log.info("the accounts database is available again")
        self._failure = reason

    def _open(self) -> "_Opened":
        """Return the open accounts. If the accounts are not open yet, or if the database file was replaced,
        open them first. Raises SetupError.
        """
        with self._lock:
            before = self._opened
            if before is not None and before.is_current:
                return before
            accounts = self._accounts if before is None else None
            self._opened = _open(self._folder.root, self._settings, accounts, self._key)
            if before is not None:
                before.directory.accounts.close()
            return self._opened

    @property
    def users(self) -> "Users":
        """Return the users of the site."""
        return self.directory().users

    @property
    def logins(self) -> "Logins":
        """Return the logins of the site's users."""
        return self.directory().logins

    @property
    def sessions(self) -> "JsonWebTokens":
        """Return the object that creates and verifies JSON Web Tokens."""
        return self.directory().sessions

    def signature(self, actor: Actor) -> tuple[str, str]:
        """Return the name and email address that identify an actor as the author of a commit.

        For the owner, both are "", so the commit's author is the person in the setting `git.committer`. For
        API tokens and the public, the email address is "", so the author has the email address from
        `git.committer`.
        """
        if actor is OWNER:
            return "", ""
        user = self.users.known(actor.user_id) if actor.user_id is not None else None
        return (user.username, user.email) if user else (actor.name.removeprefix("token:"), "")

    def identify(
        self, authorization: str, settings: Settings, *, ended: bool = False, waits: bool = True
    ) -> Actor:
        """Return the actor who sent a request, given the value of its Authorization header. If the header
        contains no token, the actor is the public.

        An unknown, expired or revoked token always raises UnauthorizedError, even if the public may send the
        same request. If `ended` is True, a user's token is accepted even if a password change has ended the
        user's sessions. If `waits` is False, NeedsThreadPool is raised instead of waiting for a database
        server.
        """
        scheme, _, credentials = authorization.partition(" ")
        text = credentials and credentials.strip()
        if scheme.startswith(TOKEN_PREFIX) and not text:
            raise UnauthorizedError(NO_SCHEME_MESSAGE)
        if not text or (scheme != COOKIE_SCHEME and scheme.lower() != "bearer"):
            return _public(settings.roles["public"])
        if text.startswith(OWNER_PREFIX) and scheme == COOKIE_SCHEME:
            if not is_session(self._folder.root, text, settings.auth.session.total_seconds()):
                raise UnauthorizedError()
            return OWNER
        if not waits and self._opened is None and is_server(self._settings.accounts):
            raise NeedsThreadPool(accounts=True)
        if scheme == COOKIE_SCHEME or text.count(".") == 2:
            return self._user_of(scheme, text, settings, ended=ended, waits=waits)
        token = self.directory().accounts.find_token(text, waits=waits)
        if token is None:
            raise UnauthorizedError()
        return token.actor()

    def _user_of(self, scheme: str, text: str, settings: Settings, *, ended: bool, waits: bool) -> Actor:
        """Return the user to whom a JSON Web Token belongs. Raises UnauthorizedError.

        If the token does not match the cached user, the cache may be outdated. The token is therefore
        rejected only if it does not match the user in the database either.
        """
        by_login = scheme == COOKIE_SCHEME or settings.auth.refresh
        if not by_login:
            claims = self.sessions.read(text)
        else:
            read = self.sessions.read_studio if scheme == COOKIE_SCHEME else self.sessions.read_access
            of_login = read(text)
            if of_login and self.logins.known(of_login[2], waits=waits) is None:
                of_login = None
            claims = of_login[:2] if of_login else None
        if claims is None:
            raise UnauthorizedError()
        for anew in (False, True):
            user = self.users.known(claims[0], waits=waits, anew=anew)
            if user is None:
                break
            usable = not user.blocked and (user.confirmed or not settings.auth.confirm_email)
            if usable and (user.sessions == claims[1] or ended):
                return Actor(f"user:{user.id}", settings.roles.get(user.role, frozenset()), user_id=user.id)
        raise UnauthorizedError()


# The cache saves 1.2 of the 8.3 µs for a repeated read.
@lru_cache(maxsize=16)
def _public(permissions: frozenset[str]) -> Actor:
    return Actor("public", permissions)


def _open(root: Path, settings: Settings, accounts: "Accounts | None", key: str) -> _Opened:
    """Open the accounts database of a site. Raises SetupError."""
    load = import_module("server.auth.directory").open_directory
    directory = cast("Directory", load(root, settings, accounts, key))
    return _Opened(directory, UserIndex(directory.users, root))
