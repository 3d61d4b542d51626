"""The header that says which commit an answer is of."""

from server.site.site import State

COMMIT_HEADER = "Quire-Commit"
OF_CONTENT = ("/api/", "/uploads/", "/source/", "/search", "/openapi.json")
OF_ACCOUNTS = ("/api/auth/", "/api/users")
CHANGED = "; changed"  # What is served differs from the commit, by files that are in none.


def commit_of(state: State) -> str:
    """What the header says of a state with a commit."""
    return state.commit + CHANGED if state.changed else state.commit


def names_commit(path: str) -> bool:
    """Whether what is answered to a read of a path depends on the commit that is served."""
    return path.startswith(OF_CONTENT) and not path.startswith(OF_ACCOUNTS)
