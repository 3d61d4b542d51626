"""Whom a site knows: all that is kept in its accounts database, opened together."""

from dataclasses import dataclass
from pathlib import Path

from server.auth.accounts import Accounts
from server.auth.attempts import LOGINS, MAILS, Attempts
from server.auth.logins import Logins
from server.auth.session_key import session_key
from server.auth.sessions import Sessions
from server.auth.users import Users
from server.config.model import Settings


@dataclass(frozen=True, slots=True)
class Directory:
    """The open accounts of a site: its tokens, its users, the logins and sessions of these.

    `attempts` counts logins that are tried, `mails` mails that are asked for.
    """

    accounts: Accounts
    users: Users
    logins: Logins
    sessions: Sessions
    attempts: Attempts
    mails: Attempts


def open_directory(
    root: Path, settings: Settings, accounts: Accounts | None = None, key: str = ""
) -> Directory:
    """The directory of the site at `root`. Raises SetupError.

    `accounts` are those of the site, where they are open already; `key` that of its sessions, if known.
    """
    accounts = accounts or Accounts(root, settings.accounts)
    return Directory(
        accounts,
        Users(accounts),
        Logins(accounts.engine),
        Sessions(key or session_key(root), settings.session.total_seconds(), accounts.site_id),
        Attempts(accounts.engine, "login", LOGINS),
        Attempts(accounts.engine, "mail", MAILS),
    )
