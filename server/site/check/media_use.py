"""Check for unused media files."""

import re
from collections.abc import Iterator
from posixpath import basename
from urllib.parse import unquote

from server.documents.ids import to_nfc
from server.formats.tree import SyntaxProblem
from server.index.dangling import MEDIA, referred_keys
from server.problems import Problem
from server.site.check.audit import Audit
from server.storage.images.variants import split_variant_path

# Text that looks like a file name, in any value, link or HTML. The lookbehind speeds up the search:
# otherwise, it would begin again at each character of a long word.
_CHAR = r"""[^\s/"'()<>\[\]{}|,=#?]"""
_FILE_NAME = re.compile(rf"(?<!{_CHAR}){_CHAR}+\.[A-Za-z0-9]{{1,8}}\b")


def find_unused_media(audit: Audit) -> Iterator[Problem]:
    """Yield a problem for each media file that no document refers to."""
    used = {key for uid, key in referred_keys(audit.snapshot) if uid == MEDIA}
    unused = {key: file for key, file in audit.snapshot.media.items() if key not in used}
    if not unused:
        return
    names = _names_in_documents(audit)
    for key, file in sorted(unused.items()):
        if basename(key) not in names:
            fix = "use the file, or delete it"
            yield Problem(
                file.path, None, "no document refers to this file", fix, "warning", None, "unused-media"
            )


def _names_in_documents(audit: Audit) -> set[str]:
    names: set[str] = set()
    for path in audit.claims:
        try:
            names |= possible_file_names(audit.text(path))
        except (OSError, SyntaxProblem):
            continue
    names.update([to_nfc(unquote(name)) for name in names])
    originals = (split_variant_path(name) for name in names)
    return names.union(original[1] for original in originals if original)


def possible_file_names(text: str) -> set[str]:
    return set(_FILE_NAME.findall(text))
