"""Check of relations to users."""

from pathlib import Path

from server.auth.accounts import Accounts
from server.auth.users import Users
from server.config.model import Settings
from server.errors import SetupError
from server.index.dangling import documents_with_users
from server.index.snapshot import Snapshot
from server.index.user_index import UserIndex
from server.paths import STATE_FOLDER

ACCOUNTS_FILE = f"{STATE_FOLDER}/accounts.db"


def with_users(root: Path, settings: Settings, snapshot: Snapshot) -> tuple[Snapshot, str]:
    """Return the snapshot, with users added if documents refer to them.

    The second value says why relations to users can't be checked, or is "" if they can be checked.
    """
    count = sum(1 for _ in documents_with_users(snapshot))
    if not count:
        return snapshot, ""
    message = f"{count} relation{'s' * (count != 1)} to users could not be checked"
    if not settings.accounts and not (root / ACCOUNTS_FILE).is_file():
        return snapshot, f"{message}: the accounts database is missing ({ACCOUNTS_FILE})"
    try:
        accounts = Accounts(root, settings.accounts)
    except SetupError as error:
        return snapshot, f"{message}: {error.message}"
    try:
        return UserIndex(Users(accounts), root).join(snapshot, settings), ""
    finally:
        accounts.close()
