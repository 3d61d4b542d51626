"""Log of git problems. Each problem is logged once, with a hint on how to fix it. Its end is logged too.

The same cause can make git fail in many places and processes. One line in the log for each cause is enough.
"""

import logging
import mmap
import re
import struct
from enum import IntEnum, auto
from functools import lru_cache
from pathlib import Path
from zlib import crc32

log = logging.getLogger("bifolio")

# For a branch, git prints only the last message, without the reason.
DISK_FULL = r"No space left on device|Out of diskspace|Disk quota exceeded|couldn't write '[^']*\.lock'"

# Patterns for git's messages, and how to fix each cause. The first match is used.
_MENDING: tuple[tuple[str, str], ...] = (
    (DISK_FULL, "make room on its disk"),
    (r"index\.lock", "if no git command is at work, delete .git/index.lock"),
    (r"\.lock': File exists", "if no git command is at work, delete that file"),
    (r" is in progress", "git status says how to finish or abort it"),
    (r"not installed|can't be run", "install git, or add its folder to PATH"),
    (
        r"belongs to another user|dubious ownership|Could not access 'HEAD'|[Nn]ot a git repository",
        "git status says why",
    ),
    (r"Read-only file system|[Pp]ermission", "let the user of the server write to .git"),
    (
        r"external filter|clean filter|filter-process|would be replaced by",
        "install the program of the filter, or change .gitattributes",
    ),
    (r"^git (commit|hook)", "git commit --no-verify commits it by hand, without hooks"),
    (r"bad config", "mend .git/config"),
    (
        r"packed-refs|broken ref|is damaged: ",
        "restore the file; .git/logs names the commits that branches were at",
    ),
    (r"index file|bad signature|bad index", "delete .git/index, and run git reset"),
    (
        r"object|bad tree|unable to read|Could not read",
        "git fsck names all that is damaged; copy that from a clone",
    ),
    (r"detached", "git switch -c NAME keeps them on a branch, and git reflog finds them later"),
    (r"another repository", "commit them there"),
    (r"not in a git repository", "git init makes one"),
)
_PATTERNS = [re.compile(pattern) for pattern, _ in _MENDING]
_BITS = 64  # Bits in a mask. All kinds that are not in the table share the bits above these.


class Concern(IntEnum):
    """A part of the server's work that a git problem can prevent."""

    COMMITS = 0  # Writes wait to be committed.
    TIMES = auto()  # Commit times of files are unknown.
    CHANGED = auto()  # The files that differ from the last commit are unknown.
    REPOSITORY = auto()  # git can't read the repository.
    WRITES = auto()  # A running git command blocks writes.
    DETACHED = auto()  # Commits are on no branch.
    SUBMODULES = auto()  # Files in a nested repository are not committed.


_NOTES = (Concern.DETACHED, Concern.SUBMODULES)  # git works despite these.


class TroubleLog:
    """Log of the problems with a site's repository. Processes that are forked later share it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._memory = mmap.mmap(-1, 8 * len(Concern))

    def tell(self, concern: Concern, reason: str, consequence: str = "") -> None:
        """Log a problem, its consequence, and how to fix it.

        If the same problem was already logged and has not been resolved, do nothing.
        """
        kind = _kind_of(reason)
        is_logged = any(self._mask(one) >> kind & 1 for one in Concern)
        self._set(concern, self._mask(concern) | 1 << kind)
        if not is_logged:
            before = f"{consequence}: " if consequence else ""
            mending = f"; {_MENDING[kind][1]}" if kind < len(_MENDING) and _MENDING[kind][1] else ""
            log.warning("%s: %s%s%s", self.root, before, reason, mending)

    def is_concerned(self, concern: Concern) -> bool:
        return self._mask(concern) != 0

    def end(self, *concerns: Concern) -> None:
        """Record that problems with these concerns are resolved. If no problem remains, log that."""
        ended = [one for one in concerns if self._mask(one)]
        for one in ended:
            self._set(one, 0)
        remaining = any(self._mask(one) for one in Concern if one not in _NOTES)
        if not remaining and any(one not in _NOTES for one in ended):
            log.info("%s: git works again", self.root)

    def _mask(self, concern: Concern) -> int:
        (mask,) = struct.unpack_from("=Q", self._memory, 8 * concern)
        return int(mask)

    def _set(self, concern: Concern, mask: int) -> None:
        struct.pack_into("=Q", self._memory, 8 * concern, mask)


# Saves no time, but all callers need the same instance: its memory is shared between processes.
@lru_cache(maxsize=64)
def trouble_log(root: Path) -> TroubleLog:
    """Return the log for a site. Call this once before forking workers."""
    return TroubleLog(root)


def _kind_of(reason: str) -> int:
    known_kind = next((kind for kind, pattern in enumerate(_PATTERNS) if pattern.search(reason)), None)
    if known_kind is not None:
        return known_kind
    # Ignore numbers such as process ids.
    return len(_MENDING) + crc32(re.sub(r"\d+", "", reason).encode()) % (_BITS - len(_MENDING))
