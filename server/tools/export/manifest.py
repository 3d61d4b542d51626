"""The manifest of an export: for which role it was made, and every file with its request and its hash.

Only files that a manifest lists are ever overwritten or removed.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from server.errors import SetupError

NAME = "quire-export.json"
TOPS = ("api", "locale", "queries", "uploads")  # the folders that an export writes into
_VERSION = 1


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """One file: the request that it answers, its size in bytes, its SHA-256.

    The hash is "" for a file that an interrupted export may have left.
    """

    request: str = ""
    size: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of an export by path. `role` and `drafts` say for whom it was made, `commit` of which state
    where that was named.
    """

    site: str
    role: str
    drafts: bool = False
    base_url: str = ""
    files: Mapping[str, ExportedFile] = field(default_factory=dict)
    commit: str = ""

    def text(self) -> str:
        """The manifest as JSON, with one line for each file, sorted by path."""
        head = {
            "quireExport": _VERSION,
            "site": self.site,
            "role": self.role,
            "drafts": self.drafts,
            "baseUrl": self.base_url,
            **({"commit": self.commit} if self.commit else {}),
        }
        lines = [
            f"{json.dumps(path, ensure_ascii=False)}: {_file_line(entry)}"
            for path, entry in sorted(self.files.items())
        ]
        start = json.dumps(head, ensure_ascii=False, indent=0)[:-2]
        return f'{start},\n"files": {{\n' + ",\n".join(lines) + "\n}}\n"


def _file_line(entry: ExportedFile) -> str:
    shown = {"request": entry.request, "bytes": entry.size, "sha256": entry.sha256}
    return json.dumps(shown, ensure_ascii=False)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in a folder; None if it has none. Raises SetupError for one that is not valid."""
    path = folder / NAME
    try:
        if path.is_symlink():
            raise ValueError("it is a link")
        data = json.loads(path.read_bytes())
        if data["quireExport"] != _VERSION:
            raise ValueError("it is of another version")
        files = {checked(name): _read_file(entry) for name, entry in data["files"].items()}
        head = (str(data["site"]), str(data["role"]), bool(data["drafts"]), str(data["baseUrl"]))
        return Manifest(*head, files)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(str(path), None, f"can't be read: {error.strerror}", "look at it") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"is no manifest that this version can use: {error}"
        raise SetupError(str(path), None, what, "export into another folder, or with --force") from error


def _read_file(entry: Any) -> ExportedFile:
    return ExportedFile(str(entry["request"]), int(entry["bytes"]), str(entry["sha256"]))


def checked(path: str) -> str:
    """A path that is inside of the folder for certain. Raises ValueError for any other."""
    parts = path.split("/")
    if len(parts) < 2 or parts[0] not in TOPS or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f'the path "{path}"')
    if "\0" in path or str(PurePosixPath(path)) != path:
        raise ValueError(f'the path "{path}"')
    path.encode()
    return path
