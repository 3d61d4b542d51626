"""Differences between versions of a document. All versions are parsed with the current schema."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import Match, SequenceMatcher
from itertools import pairwise, zip_longest
from pathlib import Path
from typing import Any

from server.documents.document import DRAFT, PUBLISHED, Document
from server.documents.encode import Reading, encode, read_attributes, read_document_id
from server.documents.file_keys import collect_other_keys, reserved_keys, with_file_name_values
from server.documents.password_masks import mask_hashes
from server.documents.values import Component, components_in, is_empty, same_values
from server.formats.tree import SyntaxProblem, Tree
from server.history.versions import Version
from server.history.viewer import Viewer
from server.index.budget import Budget
from server.schema.model import POLYMORPHIC, Attribute, Type
from server.storage.git.tree import read_blobs, read_named, read_tree, require_blob
from server.storage.read import MAX_FILE_BYTES, decode, parse, read_bytes
from server.storage.store import Store

# --- lines ----------------------------------------------------------------------------------------

MAX_DEPTH = 8  # how many times a range can be split at lines that occur exactly once in both texts
MAX_COMPARED_PAIRS = 1000  # Smaller ranges are compared by `difflib`.


class LineMatcher(SequenceMatcher[str]):
    """Variant of `difflib.SequenceMatcher` that compares lines of text faster."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__(None, before, after, autojunk=False)
        self._texts = before, after

    def get_matching_blocks(self) -> list[Match]:
        before, after = self._texts
        blocks = sorted(_blocks(before, after))
        return [*map(Match._make, blocks), Match(len(before), len(after), 0)]


def diff_lines(before: Sequence[str], after: Sequence[str], context: int = 3) -> list[str]:
    """Return a unified diff of two lists of lines, without file headers.

    `context` is the number of unchanged lines around each change.
    """
    lines = []
    for group in LineMatcher(before, after).get_grouped_opcodes(context):
        (_, old, _, new, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        lines.append(f"@@ -{_range(old, old_end)} +{_range(new, new_end)} @@")
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[start:end]]
            else:
                lines += [f"-{line}" for line in before[start:end]]
                lines += [f"+{line}" for line in after[new_start:new_end]]
    return lines


def _range(start: int, end: int) -> str:
    # the format of `@@` lines
    size = end - start
    return f"{start + 1}" if size == 1 else f"{start + bool(size)},{size}"


def _blocks(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Yield each block of equal lines as (start in `before`, start in `after`, length), in any order."""
    pending = [(0, len(before), 0, len(after), 0)]
    while pending:
        start, end, new, new_end, depth = pending.pop()
        size = _common_prefix(before, after, range(start, end), range(new, new_end))
        if size:
            yield start, new, size
        start, new = start + size, new + size
        size = _common_prefix(before, after, range(start, end)[::-1], range(new, new_end)[::-1])
        if size:
            yield end - size, new_end - size, size
        end, new_end = end - size, new_end - size
        if (end - start) * (new_end - new) <= MAX_COMPARED_PAIRS:
            matcher = SequenceMatcher(None, before[start:end], after[new:new_end], autojunk=False)
            yield from ((start + a, new + b, size) for a, b, size in matcher.get_matching_blocks() if size)
        elif depth < MAX_DEPTH and (common_lines := _common_lines(before[start:end], after[new:new_end])):
            places = [(start, new), *((start + a, new + b) for a, b in common_lines), (end, new_end)]
            pending += [(a, a_end, b, b_end, depth + 1) for (a, b), (a_end, b_end) in pairwise(places)]


def _common_prefix(
    before: Sequence[str], after: Sequence[str], old_positions: range, new_positions: range
) -> int:
    size = 0
    for position, new in zip(old_positions, new_positions, strict=False):
        if before[position] != after[new]:
            break
        size += 1
    return size


def _common_lines(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """Return the longest common sequence of lines, as pairs of positions in `before` and `after`.

    Only lines that occur exactly once in each text are considered.
    """
    unique, new_unique = ({line for line, n in Counter(lines).items() if n == 1} for lines in (before, after))
    positions = {
        line: position for position, line in enumerate(after) if line in unique and line in new_unique
    }
    pairs = [(position, positions[line]) for position, line in enumerate(before) if line in positions]
    ends: list[int] = []  # at index n: the smallest last position of a run of length n + 1
    tails: list[int] = []  # at index n: the number of the pair at the position in `ends`
    earlier: list[int] = []  # for each pair: the previous pair in its run, or -1
    for number, (_, new) in enumerate(pairs):
        length = bisect_left(ends, new)
        ends[length : length + 1] = [new]
        tails[length : length + 1] = [number]
        earlier.append(tails[length - 1] if length else -1)
    run = []
    number = tails[-1] if tails else -1
    while number >= 0:
        run.append(pairs[number])
        number = earlier[number]
    return run[::-1]


# --- differences ----------------------------------------------------------------------------------

Values = Mapping[str, Any]
# Content type, path, and git object name ("" for the file on disk).
_File = tuple[Type | None, str, str]
MAX_COMPARED_CHARS = 200_000  # Longer text gets no line diff.
_BYTES_PER_STEP = 1000  # Reading this many bytes costs one step of the budget.


@dataclass(frozen=True, slots=True)
class Content:
    """The parsed content of a document's file.

    `invalid_keys` lists the unknown keys and the attributes with invalid values.
    """

    values: Values
    invalid_keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A change to one attribute. `lines` is a line diff if the attribute contains multi-line text."""

    before: Any
    after: Any
    lines: list[str] | None = None


def read_content(
    store: Store, type_: Type | None, path: str, data: bytes, viewer: Viewer | None = None
) -> Content | None:
    """Return the parsed content of a document's file, or None if it can't be parsed.

    If the path belongs to a content type other than `type_`, return only the values that `type_` can store
    under the same names and that the viewer may see.
    """
    claim = store.layout.claim(path)
    if claim is None:
        return None
    try:
        raw = parse(path, decode(data), claim.type.body)
    except SyntaxProblem:
        return None
    tree = collect_other_keys(claim.type, with_file_name_values(claim.type, claim.name, raw))
    reading = Reading(store.schema.types)
    reading.seed = "\0".join(
        (claim.type.uid, read_document_id(tree, claim.document_id, reading), claim.locale)
    )
    values = read_attributes(claim.type, tree, (), reading)
    content = Content(
        dict(zip(claim.type.attributes, values, strict=True)), _unread(claim.type, tree, reading)
    )
    if type_ is None or type_.uid == claim.type.uid:
        return content
    return _in_type(content, claim.type, type_, viewer)


def _in_type(content: Content, earlier: Type, type_: Type, viewer: Viewer | None) -> Content:
    # Values that the earlier content type hid stay hidden.
    hidden = {
        name
        for name, old in earlier.attributes.items()
        if not old.visible or (viewer and viewer.is_hidden_elsewhere(earlier, old))
    }
    values = {
        name: content.values[name]
        for name, old in earlier.attributes.items()
        if name not in hidden and (new := type_.attributes.get(name)) and _holds_the_same(old, new)
    }
    unread = (name for name in content.invalid_keys if name.partition(".")[0] not in hidden)
    return Content(values, tuple(one for one in unread if not viewer or viewer.may_see_key(earlier, one)))


def _holds_the_same(old: Attribute, new: Attribute) -> bool:
    if old.scalar or new.scalar:
        return old.scalar and new.scalar
    shapes = (
        (a.type, a.to_many, a.relation in POLYMORPHIC, a.target, a.component, a.components)
        for a in (old, new)
    )
    return next(shapes) == next(shapes)


def _unread(type_: Type, tree: Mapping[str, Tree], reading: Reading) -> tuple[str, ...]:
    known = {*type_.attributes, *reserved_keys(type_)}
    invalid = (one.path for one in reading.mismatches if one.rule == "unknown-key" or not one.warning)
    invalid_paths = (".".join(key for key in path if isinstance(key, str)) for path in invalid)
    return tuple(dict.fromkeys([*(key for key in tree if key not in known), *invalid_paths]))


def values_of(
    store: Store, versions: Sequence[Version], budget: Budget, viewers: Sequence[Viewer] = ()
) -> Iterator[tuple[Values | None, Values | None]]:
    """Yield, for each version, the document's values before and after the change.

    The values are None if the file does not exist or can't be read. Raises LimitError if the request's budget
    runs out.
    """
    files = ((_before(version), _after(version)) for version in versions)
    both = [viewer for viewer in viewers for _ in range(2)]
    values = _read_files(store, [file for pair in files for file in pair], budget, both)
    return zip(values, values, strict=True)


def values_after(
    store: Store, versions: Sequence[Version], budget: Budget, viewers: Sequence[Viewer] = ()
) -> Iterator[Values | None]:
    return _read_files(store, [_after(version) for version in versions], budget, viewers)


def _before(version: Version) -> _File:
    return version.type, version.before, _object_name(version.parent, version.before)


def _after(version: Version) -> _File:
    return version.type, version.path, _object_name(version.commit.id if version.commit else "", version.path)


def _read_files(
    store: Store, files: Sequence[_File], budget: Budget, viewers: Sequence[Viewer]
) -> Iterator[Values | None]:
    committed = read_named(store.root, [name for _, _, name in files if name], MAX_FILE_BYTES)
    for (type_, path, name), viewer in zip_longest(files, viewers):
        data = next(committed) if name else _on_disk(store.root, path)
        budget.spend(1 + len(data or b"") // _BYTES_PER_STEP)
        content = None if data is None else read_content(store, type_, path, data, viewer)
        yield content.values if content else None


def _object_name(commit: str, path: str) -> str:
    # git's batch input has one name per line, so a path must not contain a line break.
    return f"{commit}:./{path}" if commit and path and "\n" not in path else ""


def _on_disk(root: Path, path: str) -> bytes | None:
    try:
        return read_bytes(root, path)[0] if path else None
    except (OSError, SyntaxProblem):
        return None


def content_at(
    store: Store,
    type_: Type,
    versions: Iterable[Version],
    current: Document | None,
    locale_and_status: tuple[str, str],
    commit: str,
    may_see: Callable[[str], bool] | None = None,
    viewer: Viewer | None = None,
) -> Content | None:
    """Return a document's content at a commit, or None if its file is missing or unreadable there.

    If `commit` is "", the file on disk is read. `versions` must contain all versions of the document, because
    its earlier paths are taken from them.
    """
    paths = {path for version in versions for path in (version.path, version.before) if path}
    claims = {path: store.layout.claim(path) for path in paths}
    matching = sorted(
        p for p, c in claims.items() if c and (c.locale, DRAFT if c.draft else PUBLISHED) == locale_and_status
    )
    if not matching and current:
        matching = [current.path]
    if may_see:
        matching = list(filter(may_see, matching))
    if not commit:
        read = ((path, _on_disk(store.root, path)) for path in matching)
    else:
        blobs = read_tree(store.root, commit, matching) if matching else {}
        contents = ((path, blob, next(read_blobs(store.root, [blob.id]))) for path, blob in blobs.items())
        read = ((path, require_blob(data, path, blob)) for path, blob, data in contents)
    return next(
        (read_content(store, type_, path, data, viewer) for path, data in read if data is not None), None
    )


def changed_attributes(
    attributes: Iterable[Attribute], before: Values | None, after: Values | None, viewer: Viewer
) -> list[str]:
    return [name for name, _, _ in _differing(attributes, before, after, viewer)]


def differences(
    attributes: Iterable[Attribute], before: Values | None, after: Values | None, viewer: Viewer
) -> dict[str, Difference]:
    changed = _differing(attributes, before, after, viewer)
    return {name: Difference(old, new, unified_diff(old, new)) for name, old, new in changed}


def _differing(
    attributes: Iterable[Attribute], before: Values | None, after: Values | None, viewer: Viewer
) -> Iterator[tuple[str, Any, Any]]:
    # Compare only what the viewer is allowed to see.
    for attribute in attributes:
        if not _is_same(attribute, before, after):
            old, new = (
                value_json(attribute, (values or {}).get(attribute.name), viewer)
                for values in (before, after)
            )
            if not same_values(old, new):
                yield attribute.name, old, new


def _is_same(attribute: Attribute, before: Values | None, after: Values | None) -> bool:
    old, new = ((values or {}).get(attribute.name) for values in (before, after))
    return same_values(old, new) or (is_empty(old) and is_empty(new))


def visible_values(type_: Type, values: Values, viewer: Viewer) -> dict[str, Any]:
    return {a.name: value_json(a, values.get(a.name), viewer) for a in viewer.attributes(type_)}


def value_json(attribute: Attribute, value: Any, viewer: Viewer) -> Any:
    """Convert an attribute's value to JSON, without the parts that are hidden from the viewer."""
    if is_empty(value):
        return None
    if attribute.holds_components:
        items = [_component(component, viewer) for component in components_in(value)]
        return items if attribute.to_many else items[0]
    if attribute.type == "biginteger":
        return str(value)
    value = viewer.visible_targets(attribute, value)
    # The attribute may have been a password in an earlier schema.
    return None if is_empty(value) else mask_hashes(plain(encode(attribute, value)))


def _component(component: Component, viewer: Viewer) -> dict[str, Any]:
    inner = zip(component.type.attributes.values(), component.values, strict=True)
    members = {a.name: value_json(a, value, viewer) for a, value in inner if viewer.sees(component.type, a)}
    return {"__component": component.type.uid, **members}


def plain(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {str(key): plain(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [plain(value) for value in tree]
    return str(tree) if isinstance(tree, str) else tree


def unified_diff(old: Any, new: Any) -> list[str] | None:
    """Return a line diff of two strings.

    Returns None if neither contains a line break, or if together they are too long.
    """
    texts = [text if isinstance(text, str) else "" for text in (old, new)]
    if not any("\n" in text for text in texts) or sum(map(len, texts)) > MAX_COMPARED_CHARS:
        return None
    before, after = (text.split("\n") for text in texts)
    return diff_lines(before, after)
