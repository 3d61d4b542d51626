"""Records of the commits that Bifolio created.

A record is kept as long as a queued write to the same files needs it.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from server.storage.durable import stage

_PREFIX, _UNCHANGED = "own", "none"
DELETED = ""  # used instead of a blob id if the commit deletes the file


@dataclass(frozen=True, slots=True)
class OwnVersion:
    """Version of a file that Bifolio has written."""

    write: str  # name of the write in the commit queue
    blob: str  # The version's id in git, or DELETED. Hooks may have changed the version before the commit.
    commit: str = ""  # "" if the version was not committed, for example because somebody else did that


class OwnCommits:
    """Store of the records of Bifolio's commits, in `folder`.

    A record's file name contains the name of the last write that needs the record.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, dict[str, OwnVersion]] = {}  # Records never change.

    def record(self, versions: Mapping[str, OwnVersion], last_reader: str) -> None:
        """Store the versions of the files in a commit, by path. Raises OSError.

        The record is kept until the write `last_reader` is committed.
        """
        last = max(versions.values(), key=lambda version: version.write)
        path = self._folder / "-".join((_PREFIX, last_reader, last.write, last.commit or _UNCHANGED))
        path.unlink(missing_ok=True)  # An earlier attempt may have left this file.
        stage(json.dumps({name: asdict(version) for name, version in versions.items()}).encode(), path, 0o600)

    def by_path(self) -> Mapping[str, Collection[OwnVersion]]:
        self._known = {name: self._known.get(name) or self._read(name) for name in self._names()}
        found = defaultdict[str, list[OwnVersion]](list)
        for versions in self._known.values():
            for path, version in versions.items():
                found[path].append(version)
        return found

    def sweep(self, waiting: Callable[[], Iterable[str]]) -> None:
        # Read the records first. The writes that need them were queued earlier, so `waiting` includes them.
        names = self._names()
        first = min(waiting(), default="") if names else ""
        for name in names:
            if not first or name.split("-")[1] < first:
                (self._folder / name).unlink(missing_ok=True)

    def _names(self) -> list[str]:
        try:
            return sorted(path.name for path in self._folder.iterdir() if path.name.startswith(f"{_PREFIX}-"))
        except OSError:
            return []

    def _read(self, name: str) -> dict[str, OwnVersion]:
        try:
            data = json.loads((self._folder / name).read_bytes())
            return {path: OwnVersion(**version) for path, version in data.items()}
        except (
            OSError,
            ValueError,
            TypeError,
            AttributeError,
        ):  # a process was killed while it wrote the record
            return {}
