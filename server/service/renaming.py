"""Renaming documents and media files, and updating all references to them (docs/rename.md)."""

from functools import partial

from server.documents.path_rules import ENDINGS
from server.paths import CONTENT, UPLOADS
from server.service.read import Caller
from server.service.write import Outcome, Writes
from server.write.renaming.rename import RenameRequest, RenameResult, rename


def rename_content(writes: Writes, caller: Caller, request: RenameRequest) -> Outcome[RenameResult]:
    return writes.save(caller, rename, request, message=partial(rename_message, request))


def preview_rename(writes: Writes, request: RenameRequest) -> RenameResult:
    return writes.site.preview(rename, request)[1]


def rename_message(request: RenameRequest, renamed: RenameResult) -> str:
    pairs = renamed.files.items() or [(request.old, request.new)]
    # The file with the shortest path is the published version in the default locale.
    old, new = min(pairs, key=lambda pair: len(pair[0]))
    return f"Rename {_name(old)} to {_name(new)}"


def _name(path: str) -> str:
    name = path.removeprefix(f"{CONTENT}/")
    suffix = next((suffix for suffix in ENDINGS if name.endswith(suffix)), "")
    return name if path.startswith(f"{UPLOADS}/") else name.removesuffix(suffix)
