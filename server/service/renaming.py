"""Renames of documents and media files, with all that refers to them (docs/rename.md)."""

from functools import partial

from server.documents.path_rules import ENDINGS
from server.paths import CONTENT, UPLOADS
from server.service.read import Caller
from server.service.write import Outcome, Writes
from server.write.renaming.rename import Rename, Renamed, rename


def rename_content(writes: Writes, caller: Caller, wanted: Rename) -> Outcome[Renamed]:
    """Rename what a request names, in one step. Raises what `rename` and `Writes.make` raise."""
    return writes.make(caller, rename, wanted, message=partial(_message, wanted))


def preview_rename(writes: Writes, wanted: Rename) -> Renamed:
    """Return what `rename_content` would come to, and change nothing. Raises what `rename` raises."""
    return writes.site.preview(rename, wanted)[1]


def _message(wanted: Rename, renamed: Renamed) -> str:
    """What the commit says: `Rename articles/fog to articles/mist`."""
    pairs = renamed.files.items() or [(wanted.old, wanted.new)]
    old, new = min(pairs, key=lambda pair: len(pair[0]))  # Those of drafts and of other locales are longer.
    return f"Rename {_name(old)} to {_name(new)}"


def _name(path: str) -> str:
    name = path.removeprefix(f"{CONTENT}/")
    ending = next((ending for ending in ENDINGS if name.endswith(ending)), "")
    return name if path.startswith(f"{UPLOADS}/") else name.removesuffix(ending)
