"""Trouble with git, as the log has it: each kind once, with how to mend it, and once that it is over.

One cause makes git fail in many places at once, such as commits and the list of changed files. One line of
log is enough for it, from whichever process of the server meets it first.
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

# The last is what git says of a branch, without the reason.
DISK_FULL = r"No space left on device|Out of diskspace|Disk quota exceeded|couldn't write '[^']*\.lock'"

# What is wrong, by what git says of it, and how to mend it; the first that fits counts.
_MENDING: tuple[tuple[str, str], ...] = (
    (DISK_FULL, "make room on its disk"),
    (r"index\.lock", "if no git command is at work, delete .git/index.lock"),
    (r"\.lock': File exists", "if no git command is at work, delete that file"),
    (r" is under way", "git status says how to finish it, or to give it up"),
    (r"not installed|can't be run", "install git, or add its folder to PATH"),
    (
        r"belongs to somebody else|dubious ownership|Could not access 'HEAD'|[Nn]ot a git repository",
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
    (r"in no git repository", "git init makes one"),
)
_PATTERNS = [re.compile(pattern) for pattern, _ in _MENDING]
_BITS = 64  # of a mask; kinds that are in no table share those behind the table's


class Concern(IntEnum):
    """The part of a server's work that trouble with git prevents."""

    COMMITS = 0  # what was written waits to be committed
    TIMES = auto()  # when files were committed
    CHANGED = auto()  # which files differ from the last commit
    REPOSITORY = auto()  # whether there is one
    WRITES = auto()  # a git command is at work, and writes are refused
    DETACHED = auto()  # commits are on no branch
    SUBMODULES = auto()  # files of another repository are not committed


_NOTES = (Concern.DETACHED, Concern.SUBMODULES)  # Git works all the same.


class TroubleLog:
    """The log of trouble in a site's repository, shared by all processes that are forked later."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._memory = mmap.mmap(-1, 8 * len(Concern))

    def tell(self, concern: Concern, reason: str, consequence: str = "") -> None:
        """Log the reason, its consequence and how to mend it; once until the trouble is over."""
        kind = _kind_of(reason)
        told = any(self._mask(one) >> kind & 1 for one in Concern)
        self._set(concern, self._mask(concern) | 1 << kind)
        if not told:
            before = f"{consequence}: " if consequence else ""
            mending = f"; {_MENDING[kind][1]}" if kind < len(_MENDING) and _MENDING[kind][1] else ""
            log.warning("%s: %s%s%s", self.root, before, reason, mending)

    def is_concerned(self, concern: Concern) -> bool:
        """Return whether trouble prevents this part of the work."""
        return self._mask(concern) != 0

    def end(self, *concerns: Concern) -> None:
        """Note that some trouble is over; log it if no other is left."""
        ended = [one for one in concerns if self._mask(one)]
        for one in ended:
            self._set(one, 0)
        left = any(self._mask(one) for one in Concern if one not in _NOTES)
        if not left and any(one not in _NOTES for one in ended):
            log.info("%s: git works again", self.root)

    def _mask(self, concern: Concern) -> int:
        (mask,) = struct.unpack_from("=Q", self._memory, 8 * concern)
        return int(mask)

    def _set(self, concern: Concern, mask: int) -> None:
        struct.pack_into("=Q", self._memory, 8 * concern, mask)


# Not to save time: the processes of a server share it.
@lru_cache(maxsize=64)
def trouble_log(root: Path) -> TroubleLog:
    """Return the log of a site; call it once before workers are forked."""
    return TroubleLog(root)


def _kind_of(reason: str) -> int:
    found = next((kind for kind, pattern in enumerate(_PATTERNS) if pattern.search(reason)), None)
    if found is not None:
        return found
    # Numbers differ where all else is the same: of processes, say.
    return len(_MENDING) + crc32(re.sub(r"\d+", "", reason).encode()) % (_BITS - len(_MENDING))
