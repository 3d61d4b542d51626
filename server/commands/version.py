"""`quire --version`: the version, the commit that it was made from, and the Python that runs it."""

import platform
from pathlib import Path

from server import __version__
from server.storage.git.command import LIMIT_S, git_if_possible

_PACKAGE = Path(__file__).parent.parent
# `make dist` writes it, so that an installed Quire knows its commit without git.
_COMMIT = _PACKAGE / "commit.txt"


def describe() -> str:
    """`0.1.0 (commit 24834d8, Python 3.11.7)`; without the commit where nothing tells it."""
    commit = _commit()
    return f"{__version__} ({f'commit {commit}, ' if commit else ''}Python {platform.python_version()})"


def _commit() -> str:
    if (_PACKAGE.parent / ".git").exists():  # A repository further up would be somebody else's.
        printed = git_if_possible(_PACKAGE.parent, "rev-parse", "--short", "HEAD", seconds=LIMIT_S)
        return (printed or "").strip()
    return _COMMIT.read_text(encoding="ascii").strip() if _COMMIT.is_file() else ""
