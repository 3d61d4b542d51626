"""Conversion of a document to Markdown: YAML front matter, followed by the main text."""

import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, NamedTuple
from urllib.parse import quote

from server.auth.permissions import Actor
from server.formats.tree import Plain
from server.formats.yaml.writer import yaml_mapping
from server.index.budget import Budget
from server.query.serialize import query_string
from server.schema.model import UPLOAD, Attribute, Schema, Type, content_of, title_of
from server.service.markdown.blocks import blocks_to_markdown
from server.service.markdown.syntax import collapse, escaped_line, image, link

ENDING = ".md"  # of an address whose response is always Markdown
LOCALIZATIONS = "localizations"
# Writing a value as YAML takes about 10 µs, ten times as long as a step.
STEPS_PER_VALUE = 10
QUICK_VALUES = 2000  # Documents with more values are converted one at a time.
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:T\d\d:\d\d:\d\d(?:\.\d+)?Z)?")
_DATES = frozenset({"date", "datetime", "timestamp"})
_OMITTED: tuple[Any, ...] = (None, [], {})


class Links(NamedTuple):
    """Builder of the links in one response. It creates links only to documents that the caller may read."""

    schema: Schema
    actor: Actor
    default_locale: str
    status: str = ""  # the `status` parameter of the request
    origin: str = ""  # put in front of addresses

    def markdown_url(self, type_: Type, document_id: str = "", locale: str = "", **more: str) -> str:
        single = type_.kind == "singleType"
        path = f"{self.origin}/api/{type_.singular if single else type_.plural}"
        if document_id and not single:
            path += f"/{quote(document_id, safe='')}"
        params = {
            "locale": locale if type_.localized and locale != self.default_locale else "",
            "status": self.status if type_.draft_publish else "",
            **more,
        }
        query = query_string({name: value for name, value in params.items() if value})
        return f"{path}{ENDING}?{query}" if query else path + ENDING

    def document_link(self, type_: Type, value: Mapping[str, Any], text: str = "") -> str:
        """Return a link to a document, or only the text if the caller may not read the document."""
        document_id = str(value.get("documentId") or "")
        text = text or title_text(type_, value)
        action = "find" if type_.kind == "singleType" else "findOne"
        has_address = self.schema.subjects.get(type_.singular) is type_ and document_id
        if not has_address or not self.actor.may(type_.singular, action):
            return escaped_line(text)
        return link(text, self.markdown_url(type_, document_id, str(value.get("locale") or "")))


def title_text(type_: Type, value: Mapping[str, Any]) -> str:
    title = value.get(title_of(type_) or "")
    return (collapse(title) if isinstance(title, str) else "") or str(value.get("documentId") or "")


def document_markdown(type_: Type, body: bytes, links: Links, budget: Budget) -> bytes:
    """Convert a document from JSON to Markdown.

    Raises NeedsThreadPool if the document is too large for the event loop. Also raises LimitError or
    BusyError.
    """
    # Decimals keep all their digits.
    data = json.loads(body, parse_float=Decimal)
    count = _count_values(data)
    budget.spend(STEPS_PER_VALUE * count)
    if count > QUICK_VALUES:
        budget.take_turn()
    name = content_of(type_)
    text = _text(type_.attributes[name], data.pop(name, None)) if name else ""
    matter = yaml_mapping({"documentId": data.get("documentId"), **_front_matter(type_, data, links)})
    budget.write(len(matter) + len(text))
    return "".join(("---\n", matter, "---\n", *(("\n", text, "\n") if text else ()))).encode()


def _text(attribute: Attribute, value: Any) -> str:
    if attribute.type == "blocks":
        return blocks_to_markdown(value)
    return value if isinstance(value, str) else ""


def _front_matter(type_: Type, data: Mapping[str, Any], links: Links) -> dict[str, Any]:
    found = {}
    for name, attribute in type_.columns.items():
        if name in data and name not in ("id", "documentId"):
            found[name] = _value(attribute, data[name], links)
    if LOCALIZATIONS in data:
        found[LOCALIZATIONS] = _localizations(type_, data[LOCALIZATIONS], links)
    return {name: value for name, value in found.items() if value not in _OMITTED}


def _value(attribute: Attribute, value: Any, links: Links) -> Any:
    if value is None or attribute.scalar:
        return _scalar(attribute, value)
    if isinstance(value, list):
        return [_front_matter_item(attribute, item, links) for item in value]
    return _front_matter_item(attribute, value, links)


def _scalar(attribute: Attribute, value: Any) -> Any:
    if attribute.type == "blocks":
        return blocks_to_markdown(value) or None
    if attribute.type in _DATES and isinstance(value, str) and _DATE.fullmatch(value):
        return Plain(value)
    return value


def _front_matter_item(attribute: Attribute, value: Any, links: Links) -> Any:
    if not isinstance(value, Mapping) or value.keys() == {"count"}:
        return value  # populate[x][count]=true
    uid = value.get("__component") or value.get("__type") or attribute.component or attribute.target
    type_ = links.schema.types.get(UPLOAD if attribute.type == "media" else str(uid))
    if type_ is None:
        return None
    if attribute.holds_components:
        kind = {"__component": type_.uid} if attribute.type == "dynamiczone" else {}
        return {**kind, **_front_matter(type_, value, links)}
    return _file(value) if type_.uid == UPLOAD else links.document_link(type_, value)


def _file(value: Mapping[str, Any]) -> str:
    name, url = str(value.get("name") or ""), str(value.get("url") or "")
    if str(value.get("mime") or "").startswith("image/"):
        return image(str(value.get("alternativeText") or name), url)
    return link(name or url, url)


def _localizations(type_: Type, value: Any, links: Links) -> Any:
    if not isinstance(value, list):
        return value
    return [links.document_link(type_, item, str(item.get("locale") or "")) for item in value]


def _count_values(value: Any) -> int:
    return sum(1 for _ in _walk(value))


def _walk(value: Any) -> Iterator[Any]:
    waiting = [value]
    while waiting:
        current = waiting.pop()
        yield current
        if isinstance(current, dict):
            waiting.extend(current.values())
        elif isinstance(current, list):
            waiting.extend(current)
