"""The sites that are open in the editor."""

import logging
from pathlib import Path

from server.jobs.job import Timing
from server.lsp.positions import Text, apply_changes, path_from_uri, without_surrogates
from server.lsp.protocol import Json
from server.lsp.view import EditorCapabilities
from server.lsp.workspace import OpenText, Publish, Workspace
from server.paths import SETTINGS, TYPES

log = logging.getLogger("bifolio")


class Session:
    """The sites that are open in the editor. Not thread-safe."""

    def __init__(self, publish: Publish, site: Path | None, timing: Timing) -> None:
        self.client = EditorCapabilities()
        self._publish, self._site, self._timing = publish, site, timing
        self.workspaces: dict[Path, Workspace] = {}
        self._folders: dict[Path, Path | None] = {}

    def open_folder(self, folder: Path) -> None:
        if self._site is not None:
            folder = self._site
        if is_site(folder):
            self._workspace(folder)

    def close_folder(self, folder: Path) -> None:
        workspace = self.workspaces.pop(folder.resolve(), None)
        if workspace is not None:
            workspace.stop()

    def stop(self) -> None:
        for workspace in self.workspaces.values():
            workspace.stop()

    def find(self, uri: object) -> tuple[Workspace, str] | None:
        """Return the site that contains a file, and the file's path in that site.

        Return None if the file is not in a site.
        """
        path = path_from_uri(uri)
        root = self._root_of(path) if path else None
        if path is None or root is None:
            return None
        try:
            resolved = path.parent.resolve() / path.name
            inside = resolved.relative_to(root).as_posix()
        except (OSError, ValueError):
            return None
        return self._workspace(root), inside

    def _workspace(self, root: Path) -> Workspace:
        root = root.resolve()
        if root not in self.workspaces:
            workspace = Workspace(root, self.client, self._publish, self._timing)
            self.workspaces[root] = workspace
            workspace.start()
        return self.workspaces[root]

    def _root_of(self, path: Path) -> Path | None:
        # If the command line names a site, all other sites are ignored.
        folder = path.parent
        if folder not in self._folders:
            if self._site is not None:
                candidates = [self._site.resolve()] if path.is_relative_to(self._site.resolve()) else []
            else:
                candidates = list(path.parents)
            open_roots = (root for root in candidates if root in self.workspaces)
            found = next((root for root in candidates if is_site(root)), None) or next(open_roots, None)
            self._folders[folder] = found.resolve() if found else None
        return self._folders[folder]

    # --- texts ---------------------------------------------------------------------------------

    def open(self, document: Json) -> None:
        found = self.find(document.get("uri"))
        if found:
            workspace, path = found
            text = without_surrogates(str(document.get("text", "")))
            workspace.set_text(path, OpenText(str(document["uri"]), Text(text), _version(document)))

    def change(self, document: Json, changes: object) -> None:
        found = self.find(document.get("uri"))
        opened = found[0].opened.get(found[1]) if found else None
        if found and opened:
            text = Text(apply_changes(opened.text.value, changes))
            found[0].set_text(found[1], OpenText(opened.uri, text, _version(document)))

    def save(self, document: Json) -> None:
        self._folders.clear()  # Clear the cache, because the file may be the first file of a site.
        if found := self.find(document.get("uri")):
            found[0].request_check()

    def close(self, document: Json) -> None:
        if found := self.find(document.get("uri")):
            found[0].close(found[1])


def is_site(folder: Path) -> bool:
    try:
        return (folder / SETTINGS).is_file() or (folder / TYPES).is_dir()
    except OSError:  # The name is too long, or the folder can't be read.
        return False


def _version(document: Json) -> int | None:
    version = document.get("version")
    return version if isinstance(version, int) else None
