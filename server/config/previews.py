"""The `preview` section of site.yaml: where the documents of each type are previewed (docs/preview.md)."""

import re
from collections.abc import Iterator, Mapping

from server.config import values
from server.config.model import PREVIEW_NAMES, Preview
from server.formats.config_file import ConfigFile
from server.formats.positions import KeyPath
from server.schema.model import Schema, Type
from server.schema.spelling import suggestion

# Each key of a type below `preview`, where it says more than the address, and a sentence.
PREVIEW_KEYS: Mapping[str, str] = {
    "url": "The address, with `{placeholders}`.",
    "unmarked": "Attributes that get no marks, such as `seo.canonical`, since a page uses them as addresses.",
}
# A path of this server, or an origin: placeholders can only follow on it, so that it is known what is framed.
_START = re.compile(
    r"(https?://([a-z0-9_-]+(\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\])(:[1-9]\d{0,4})?(?=[/?#]|$)|/(?![/\\]))", re.I
)
_REST = re.compile(r"([^\s{}\x00-\x1f\x7f]|\{[A-Za-z0-9_-]+\})*")


def read_preview(file: ConfigFile, *at: str) -> Preview:
    """The preview of the type that a path of keys names. Raises SetupError with the line."""
    if isinstance(file.get(*at), str):
        return Preview(_address(file, *at))
    section = values.section(file, *at)
    for key in section:
        if key not in PREVIEW_KEYS:
            fix = suggestion(key, PREVIEW_KEYS) or "known here: " + ", ".join(PREVIEW_KEYS)
            raise file.refuse_key(f'the key "{".".join((*at, key))}" is not known', fix, *at, key)
    unmarked = values.text_or_texts(file, (), *at, "unmarked")
    return Preview(_address(file, *at, "url"), frozenset(unmarked))


def _address(file: ConfigFile, *at: str) -> str:
    url = values.text(file, "", *at)
    start = _START.match(url)
    if not start:
        fix = "write it as https://example.org/preview?slug={slug}, or as a path of this server"
        raise file.refuse(f'"{".".join(at)}" must be an address', fix, *at)
    if not _REST.fullmatch(url[start.end() :]):
        fix = "write each placeholder as {slug}, and everything else without braces and spaces"
        raise file.refuse(f'the address "{".".join(at)}" can\'t be read', fix, *at)
    return url


def odd_names(previews: Mapping[str, Preview], schema: Schema) -> Iterator[tuple[str, str, KeyPath]]:
    """What names no type, no attribute or no placeholder: what is odd, what to do, and the path of keys."""
    for name, preview in previews.items():
        type_ = schema.subjects.get(name)
        if type_ is None:
            fix = suggestion(name, schema.subjects) or "fix the name"
            yield f'preview names "{name}", which is no content type', fix, ("preview", name)
            continue
        known = (*(n for n, a in type_.attributes.items() if a.selectable), *PREVIEW_NAMES)
        for placeholder in preview.placeholders:
            if placeholder not in known:
                fix = suggestion(placeholder, known) or "known here: " + ", ".join(known)
                what = f'the preview of {name} has "{{{placeholder}}}", which is no attribute with one value'
                yield what, fix, ("preview", name, "url")
        for path in sorted(preview.unmarked):
            if not _leads_somewhere(type_, path.split("."), schema):
                what = f'preview.{name}.unmarked names "{path}", which is no attribute'
                fix = suggestion(path, type_.attributes) or "write it as slug or seo.canonical"
                yield what, fix, ("preview", name, "unmarked")


def _leads_somewhere(type_: Type, names: list[str], schema: Schema) -> bool:
    """Whether a path of attributes is one of a type; in a dynamic zone, of any of its components."""
    attribute = type_.attributes.get(names[0])
    if attribute is None or len(names) == 1:
        return attribute is not None
    inner = filter(None, (attribute.component, *attribute.components))
    return any(_leads_somewhere(schema.types[uid], names[1:], schema) for uid in inner)
