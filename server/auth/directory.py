"""Access to a site's users, tokens and logins."""

import hmac
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from server.auth.accounts import Accounts
from server.auth.attempts import LOGINS, MAILS, AttemptLimiter
from server.auth.json_web_tokens import JsonWebTokens
from server.auth.logins import Logins
from server.auth.session_key import previous_key, session_key
from server.auth.users import Users
from server.config.model import Settings
from server.database.engine import DuplicateError
from server.errors import UnavailableError


@dataclass(frozen=True, slots=True)
class Directory:
    """Objects that read and change a site's users, tokens and logins."""

    accounts: Accounts
    users: Users
    logins: Logins
    sessions: JsonWebTokens
    login_limiter: AttemptLimiter
    email_limiter: AttemptLimiter


def open_directory(
    root: Path, settings: Settings, accounts: Accounts | None = None, key: str = ""
) -> Directory:
    """Open the accounts database and the signing key of the site at `root`.

    Raises SetupError if one of them can't be used.
    """
    accounts = accounts or Accounts(root, settings.accounts)
    return Directory(
        accounts,
        Users(accounts),
        Logins(accounts),
        JsonWebTokens(
            key or session_key(root),
            settings.auth.session.total_seconds(),
            accounts.site_id,
            previous_key(root),
        ),
        AttemptLimiter(accounts.engine, "login", LOGINS),
        AttemptLimiter(accounts.engine, "mail", MAILS),
    )


def differs_from_last(accounts: Accounts, key: str) -> bool:
    """Store a digest of the signing key. Return whether it differs from the digest that was stored before."""
    # Only a digest is stored, because anyone who read the key from the database could sign in as any user.
    mark = hmac.digest(key.encode(), accounts.site_id.encode(), "sha256").hex()
    with suppress(DuplicateError, UnavailableError), accounts.engine.writing() as connection:
        before = connection.execute("SELECT mark FROM session_keys").fetchone()
        if before is None:
            connection.execute("INSERT INTO session_keys (row, mark) VALUES (1, ?)", (mark,))
        elif before[0] != mark:
            connection.execute("UPDATE session_keys SET mark = ?", (mark,))
            return True
    return False
