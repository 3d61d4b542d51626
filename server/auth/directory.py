"""Whom a site knows: all that is kept in its accounts database, opened together."""

from dataclasses import dataclass
from pathlib import Path

from server.auth.accounts import Accounts
from server.auth.logins import Logins
from server.auth.users import Users


@dataclass(frozen=True, slots=True)
class Directory:
    """The open accounts of a site: its tokens, its users, and the logins of these."""

    accounts: Accounts
    users: Users
    logins: Logins


def open_directory(root: Path, url: str, accounts: Accounts | None = None) -> Directory:
    """The directory of the site at `root`, whose `accounts:` may be a URL. Raises SetupError.

    `accounts` are those of the site, where they are open already.
    """
    accounts = accounts or Accounts(root, url)
    return Directory(accounts, Users(accounts), Logins(accounts.engine))
