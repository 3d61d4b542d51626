"""The manifest of an export: what was exported as whom, and every file with its request and its hash.

It is what makes a folder ours: only files that it lists are ever overwritten or removed.
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
class Entry:
    """One file: the request whose answer it is, its bytes and their SHA-256.

    An export that was cut off may have left files whose hash it does not know: it is empty then.
    """

    request: str = ""
    size: int = 0
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """All files of an export by path. `role` and `drafts` say who may see what is in it."""

    site: str
    role: str
    drafts: bool = False
    base_url: str = ""
    files: Mapping[str, Entry] = field(default_factory=dict)

    def text(self) -> str:
        """The manifest as JSON, a line for each file, in the order of their paths."""
        head = {
            "quireExport": _VERSION,
            "site": self.site,
            "role": self.role,
            "drafts": self.drafts,
            "baseUrl": self.base_url,
        }
        lines = [
            f"{json.dumps(path, ensure_ascii=False)}: {_entry(entry)}"
            for path, entry in sorted(self.files.items())
        ]
        start = json.dumps(head, ensure_ascii=False, indent=0)[:-2]
        return f'{start},\n"files": {{\n' + ",\n".join(lines) + "\n}}\n"


def _entry(entry: Entry) -> str:
    shown = {"request": entry.request, "bytes": entry.size, "sha256": entry.sha256}
    return json.dumps(shown, ensure_ascii=False)


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest in a folder; None where it has none. Raises SetupError for one that can't be trusted."""
    path = folder / NAME
    try:
        if path.is_symlink():
            raise ValueError("it is a link")
        data = json.loads(path.read_bytes())
        if data["quireExport"] != _VERSION:
            raise ValueError("it is of another version")
        files = {checked(name): _read_entry(entry) for name, entry in data["files"].items()}
        head = (str(data["site"]), str(data["role"]), bool(data["drafts"]), str(data["baseUrl"]))
        return Manifest(*head, files)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(str(path), None, f"can't be read: {error.strerror}", "look at it") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        what = f"is no manifest that this version can use: {error}"
        raise SetupError(str(path), None, what, "export into another folder, or with --force") from error


def _read_entry(entry: Any) -> Entry:
    return Entry(str(entry["request"]), int(entry["bytes"]), str(entry["sha256"]))


def checked(path: str) -> str:
    """A path that is surely inside of the folder. Raises ValueError."""
    parts = path.split("/")
    if len(parts) < 2 or parts[0] not in TOPS or any(part in ("", ".", "..") for part in parts):
        raise ValueError(f'the path "{path}"')
    if "\0" in path or str(PurePosixPath(path)) != path:
        raise ValueError(f'the path "{path}"')
    path.encode()
    return path
