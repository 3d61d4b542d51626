"""Cache for repeated checks of a site."""

from hashlib import blake2b

from server.formats.prose import Prose
from server.site.check.page import read_prose

Key = tuple[bytes, int]
Anchors = tuple[frozenset[str], frozenset[str]]  # anchors, and names that may be anchors


class ProseCache:
    """Cache of the prose and anchors that were found in texts. It is not thread-safe."""

    def __init__(self) -> None:
        self._prose: dict[Key, Prose] = {}
        self._anchors: dict[tuple[str, bytes], Anchors] = {}
        self._used: set[Key | tuple[str, bytes]] = set()

    def prose(self, text: str, first_line: int) -> Prose:
        key = _digest(text), first_line
        self._used.add(key)
        known = self._prose.get(key)
        if known is not None:
            return Prose(known.links, known.headings, text)
        found = read_prose(text, first_line)
        self._prose[key] = Prose(found.links, found.headings)  # stored without the text, to save memory
        return found

    def anchors(self, path: str, text: str) -> Anchors | None:
        key = path, _digest(text)
        self._used.add(key)
        return self._anchors.get(key)

    def set_anchors(self, path: str, text: str, anchors: Anchors) -> None:
        self._anchors[path, _digest(text)] = anchors

    def drop_unused(self) -> None:
        self._prose = {key: prose for key, prose in self._prose.items() if key in self._used}
        self._anchors = {key: found for key, found in self._anchors.items() if key in self._used}
        self._used = set()


def _digest(text: str) -> bytes:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=16).digest()
