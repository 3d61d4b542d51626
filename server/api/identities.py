"""Identification of a request's sender."""

import logging
import re
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, cast

from server.auth.owner import OWNER, is_session
from server.auth.owner import SESSION_PREFIX as OWNER_PREFIX
from server.auth.permissions import TOKEN_PREFIX, Actor, forbidden, has
from server.config.model import Settings
from server.database.address import is_server
from server.database.outage import Outage, reason_of
from server.errors import (
    NeedsThreadPool,
    SetupError,
    UnauthorizedError,
    UnavailableError,
    ValidationError,
)
from server.index.user_index import UserIndex
from server.site.folder import SiteFolder

if TYPE_CHECKING:
    from server.auth.accounts import Accounts
    from server.auth.directory import Directory
    from server.auth.json_web_tokens import JsonWebTokens
    from server.auth.logins import Logins
    from server.auth.users import Users

log = logging.getLogger("bifolio")

_NO_EMAIL = re.compile(r"[<>@]")
NO_SCHEME_MESSAGE = "Write Bearer before the token: Authorization: Bearer bifolio_…"
# authorization scheme that `server.api.studio.cookie` uses for the studio's token
COOKIE_SCHEME = "Studio"
# separates the credentials from the role that `server.api.role_view` adds; no header can contain it
ROLE_MARK = "\n"


@dataclass(frozen=True, slots=True)
class _Opened:
    directory: "Directory"
    user_index: UserIndex

    @property
    def is_current(self) -> bool:
        return self.directory.accounts.is_current


class Identities:
    """A site's API tokens, users and sessions. Thread-safe, but not fork-safe."""

    def __init__(
        self, folder: SiteFolder, settings: Settings, accounts: "Accounts | None" = None, key: str = ""
    ) -> None:
        # The key is passed in, because all processes must use the same one even if the key file changes.
        self._folder, self._settings, self._accounts, self._key = folder, settings, accounts, key
        self._lock = RLock()
        self._failure = ""  # why the database file could not be opened
        self._opened: _Opened | None = None
        self._outage = Outage(self._open, "the accounts database")

    def directory(self) -> "Directory":
        return self._current().directory

    def user_index(self) -> UserIndex:
        """Return the user index. Raises UnavailableError if the database can't be opened."""
        return self._current().user_index

    @property
    def are_open(self) -> bool:
        return self._opened is not None

    @property
    def is_database_read_only(self) -> bool:
        opened = self._opened
        return opened is not None and opened.directory.accounts.is_read_only

    def invalidate(self, key: str) -> None:
        """Remove the account with this key from the cache. If `key` is "", remove all accounts."""
        opened = self._opened
        if opened is not None:
            known = opened.directory.accounts.known
            known.forget(key) if key else known.expire()

    def _current(self) -> "_Opened":
        opened = self._opened
        if opened is not None and opened.is_current:
            return opened
        self._outage.check()
        with self._lock:
            # Another thread may have failed while this thread waited for the lock.
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
        if reason and reason != self._failure:
            log.error("%s", reason)
        elif self._failure and not reason:
            log.info("the accounts database is available again")
        self._failure = reason

    def _open(self) -> "_Opened":
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
        return self.directory().users

    @property
    def logins(self) -> "Logins":
        return self.directory().logins

    @property
    def sessions(self) -> "JsonWebTokens":
        return self.directory().sessions

    def commit_author(self, actor: Actor) -> tuple[str, str]:
        """Return the name and e-mail address of the author to record in the actor's commits.

        If the name or address is "", the commit uses the one in the setting `git.committer`.
        """
        if actor is OWNER:
            return "", ""
        user = self.users.get_cached(actor.user_id) if actor.user_id is not None else None
        # The names of tokens from older releases can contain any characters.
        return (user.username, user.email) if user else (_NO_EMAIL.sub("", actor.name[len("token:") :]), "")

    def actor_name(self, actor_key: str) -> str | None:
        """Return the name of the actor with a key such as `user:7`, or None if the user has been deleted."""
        kind, _, name = actor_key.partition(":")
        if kind != "user" or not name.isdigit():
            return name or kind
        user = self.users.get_cached(int(name))
        return user.username if user else None

    def identify(
        self, authorization: str, settings: Settings, *, allow_ended: bool = False, waits: bool = True
    ) -> Actor:
        """Return the actor identified by an Authorization header.

        Raises UnauthorizedError if the header is invalid.

        - `allow_ended`: whether to accept tokens of sessions that were ended by a password change.
        - `waits`: whether to wait for a database server. If False, raise NeedsThreadPool instead of waiting.
        """
        credentials, _, role = authorization.partition(ROLE_MARK)
        actor = self._identify(credentials, settings, allow_ended=allow_ended, waits=waits)
        return _restrict_to_role(actor, role, settings) if role else actor

    def _identify(self, authorization: str, settings: Settings, *, allow_ended: bool, waits: bool) -> Actor:
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
            return self._user_of(scheme, text, settings, allow_ended=allow_ended, waits=waits)
        accounts = self.directory().accounts
        token = accounts.find_token(text, waits=waits)
        if token is None:
            raise UnauthorizedError()
        if token.maker_id is not None:
            maker = self.users.get_cached(token.maker_id, waits=waits)
            if maker is None or maker.blocked:
                raise UnauthorizedError()
        accounts.last_uses.note_token(token.name)
        return token.actor()

    def _user_of(
        self, scheme: str, text: str, settings: Settings, *, allow_ended: bool, waits: bool
    ) -> Actor:
        by_login = scheme == COOKIE_SCHEME or settings.auth.refresh
        if not by_login:
            claims = self.sessions.read(text)
        else:
            read = self.sessions.read_studio if scheme == COOKIE_SCHEME else self.sessions.read_access
            of_login = read(text)
            if of_login and self.logins.get_cached(of_login[2], waits=waits) is None:
                of_login = None
            claims = of_login[:2] if of_login else None
        if claims is None:
            raise UnauthorizedError()
        for anew in (False, True):
            user = self.users.get_cached(claims[0], waits=waits, bypass_cache=anew)
            if user is None:
                break
            usable = not user.blocked and (user.confirmed or not settings.auth.confirm_email)
            if usable and (user.sessions == claims[1] or allow_ended):
                self.directory().accounts.last_uses.note_user(user.id)
                return Actor(f"user:{user.id}", settings.roles.get(user.role, frozenset()), user_id=user.id)
        raise UnauthorizedError()


def _restrict_to_role(actor: Actor, role: str, settings: Settings) -> Actor:
    """Limit an actor's permissions to those of a role.

    Raises ForbiddenError if the actor may not read roles, and ValidationError if the role does not exist.
    """
    if not actor.may("role", "find"):
        raise forbidden(actor, "role", "find", is_type=False)
    if role not in settings.roles:
        raise ValidationError(f'unknown role "{role[:100]}" in the header Bifolio-Role')
    permissions = frozenset(one for one in settings.roles[role] if has(actor, one))
    return Actor(f"role:{role}", permissions, branch_only=actor.branch_only)


# The cache saves 1.2 of the 8.3 µs that a repeated read takes.
@lru_cache(maxsize=16)
def _public(permissions: frozenset[str]) -> Actor:
    return Actor("public", permissions)


def _open(root: Path, settings: Settings, accounts: "Accounts | None", key: str) -> _Opened:
    load = import_module("server.auth.directory").open_directory
    directory = cast("Directory", load(root, settings, accounts, key))
    return _Opened(directory, UserIndex(directory.users, root))
