"""Check of relations to users.

The check requires the accounts database, which is not part of a git clone.
"""

from server.auth.accounts import Accounts
from server.auth.users import Users
from server.errors import SetupError
from server.index.dangling import related_to_users
from server.index.snapshot import Snapshot
from server.index.user_index import UserIndex
from server.paths import STATE_FOLDER
from server.site.site import Site

ACCOUNTS_FILE = f"{STATE_FOLDER}/accounts.db"


def join_users(site: Site) -> tuple[Snapshot, str]:
    """Return the site's snapshot together with its users, and a sentence.

    The sentence is "", or states that the relations to users can't be checked, and why.
    """
    snapshot, settings = site.state.snapshot, site.state.settings
    count = sum(1 for _ in related_to_users(snapshot))
    if not count:
        return snapshot, ""
    message = f"{count} relation{'s' * (count != 1)} to users could not be checked"
    if not settings.accounts and not (site.root / ACCOUNTS_FILE).is_file():
        return snapshot, f"{message}: the accounts database is missing ({ACCOUNTS_FILE})"
    try:
        accounts = Accounts(site.root, settings.accounts)
    except SetupError as error:
        return snapshot, f"{message}: {error.message}"
    try:
        return UserIndex(Users(accounts), site.root).join(snapshot, settings), ""
    finally:
        accounts.close()
