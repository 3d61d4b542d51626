"""Log of git problems, which reports each cause only once until git works again."""

import logging
import mmap
import re
import struct
from enum import IntEnum, auto
from functools import lru_cache
from pathlib import Path
from zlib import crc32

log = logging.getLogger("bifolio")

# The last pattern matches the only message that git prints if it can't lock a branch on a full disk.
DISK_FULL = r"No space left on device|Out of diskspace|Disk quota exceeded|couldn't write '[^']*\.lock'"

# Patterns for git's messages, and how to fix each cause. The first match is used.
_MENDING: tuple[tuple[str, str], ...] = (
    (DISK_FULL, "free space on the disk"),
    (r"index\.lock", "if no git command is running, delete .git/index.lock"),
    (r"\.lock': File exists", "if no git command is running, delete that file"),
    (r" is in progress", "git status shows how to finish or abort it"),
    (r"not installed|can't be run", "install git, or add its folder to PATH"),
    (
        r"belongs to another user|dubious ownership|Could not access 'HEAD'|[Nn]ot a git repository",
        "git status shows the reason",
    ),
    (r"Read-only file system|[Pp]ermission", "give the server's user write permission for .git"),
    (
        r"external filter|clean filter|filter-process|would be replaced by",
        "install the filter's program, or change .gitattributes",
    ),
    (r"^git (commit|hook)|aborted by hook", "to commit without hooks, run git commit --no-verify by hand"),
    (r"bad config", "fix .git/config"),
    (
        r"packed-refs|broken ref|is damaged: ",
        "restore the file; .git/logs contains the earlier commits of each branch",
    ),
    (r"index file|bad signature|bad index", "delete .git/index, and run git reset"),
    (
        r"object|bad tree|unable to read|Could not read",
        "git fsck lists the damaged objects; copy them from a clone",
    ),
    (r"detached", "to keep the commits on a branch, run git switch -c NAME; git reflog finds them later"),
    (r"a different repository", "commit these files in that repository"),
    (r"not in a git repository", "to create a repository, run git init"),
)
_PATTERNS = [re.compile(pattern) for pattern, _ in _MENDING]
# Causes of problems are stored as bits of a mask: one bit for each pattern, and the rest for other causes.
_BITS = 64


class AffectedTask(IntEnum):
    """Task that a git problem prevents or delays."""

    COMMITS = 0  # Writes can't be committed now, so they remain in the queue.
    TIMES = auto()  # The commit times of files are unknown.
    CHANGED = auto()  # It is unknown which files differ from the last commit.
    REPOSITORY = auto()  # git can't read the repository.
    WRITES = auto()  # A git command is running, so writes must wait.
    DETACHED = auto()  # HEAD is detached, so new commits are on no branch.
    SUBMODULES = auto()  # Files in a nested repository are not committed.


_NOTES = (AffectedTask.DETACHED, AffectedTask.SUBMODULES)  # git works in spite of these problems.


class TroubleLog:
    """Log of a site's git problems, shared by forked processes."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._memory = mmap.mmap(-1, 8 * len(AffectedTask))

    def report(self, task: AffectedTask, reason: str, consequence: str = "") -> None:
        """Log a problem and how to fix it, unless the same cause is already logged."""
        kind = _kind_of(reason)
        is_logged = any(self._mask(one) >> kind & 1 for one in AffectedTask)
        self._set(task, self._mask(task) | 1 << kind)
        if not is_logged:
            before = f"{consequence}: " if consequence else ""
            mending = f"; {_MENDING[kind][1]}" if kind < len(_MENDING) and _MENDING[kind][1] else ""
            log.warning("%s: %s%s%s", self.root, before, reason, mending)

    def is_affected(self, task: AffectedTask) -> bool:
        return self._mask(task) != 0

    def resolve(self, *tasks: AffectedTask) -> None:
        """Mark the problems of these tasks as resolved. If no problems remain, log that git works again."""
        ended = [one for one in tasks if self._mask(one)]
        for one in ended:
            self._set(one, 0)
        remaining = any(self._mask(one) for one in AffectedTask if one not in _NOTES)
        if not remaining and any(one not in _NOTES for one in ended):
            log.info("%s: git works again", self.root)

    def _mask(self, task: AffectedTask) -> int:
        (mask,) = struct.unpack_from("=Q", self._memory, 8 * task)
        return int(mask)

    def _set(self, task: AffectedTask, mask: int) -> None:
        struct.pack_into("=Q", self._memory, 8 * task, mask)


# Cached so that all callers get the same instance, whose memory is shared between processes.
@lru_cache(maxsize=64)
def trouble_log(root: Path) -> TroubleLog:
    """Return a site's log of git problems.

    It must be created before workers are forked, so that they share it.
    """
    return TroubleLog(root)


def _kind_of(reason: str) -> int:
    known_kind = next((kind for kind, pattern in enumerate(_PATTERNS) if pattern.search(reason)), None)
    if known_kind is not None:
        return known_kind
    # Ignore numbers, such as process ids, which would make each message look like a new cause.
    return len(_MENDING) + crc32(re.sub(r"\d+", "", reason).encode()) % (_BITS - len(_MENDING))
