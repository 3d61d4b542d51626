"""A simulated editor who makes the change of a recorded API request by hand, in files.

The rules of docs/files.md for the content of files are implemented here a second time, so that reading is
tested independently of writing. The documents of each type use Markdown, JSON and YAML in turn. Every other
document has its id inside the file; the rest have it in the file name.
"""

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

DEFAULT = "en"
ENDINGS = ("md", "json", "yaml")
Attributes = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Key:
    """The key of one version of a document: type, document, locale and status. Each version is stored in one
    file.
    """

    api_id: str
    document_id: str
    locale: str
    draft: bool


@dataclass(slots=True)
class Paper:
    """The path and content of a file."""

    stem: str
    ending: str
    data: dict[str, Any]
    id_in_file: bool


@dataclass(slots=True)
class Editor:
    """An editor who writes the content folder of one site."""

    root: Path
    papers: dict[Key, Paper] = field(default_factory=dict)
    made: int = 0
    clock: datetime = datetime(2024, 1, 1, tzinfo=UTC)

    # --- the three kinds of changes that a request can make -------------------------------------------

    def play(self, method: str, path: str, body: Any) -> str | None:
        """Change the files as the request would have changed them, and return the affected documentId."""
        parts = urlsplit(path)
        params = dict(parse_qsl(parts.query, keep_blank_values=True))
        _, api, api_id, *rest = parts.path.split("/")
        assert api == "api"
        type_ = self.type(api_id)
        locale = params.get("locale", DEFAULT) if localized(type_) else DEFAULT
        document_id = rest[0] if rest else None
        if type_["kind"] == "singleType":
            document_id = self.single_type_document_id(api_id)
        self.clock += timedelta(minutes=1)
        if method == "DELETE":
            self.delete(api_id, document_id, locale)
            return document_id
        draft = params.get("status") == "draft" and type_["options"]["draftAndPublish"]
        key = Key(api_id, document_id or self.new_id(type_), locale, draft)
        self.save(type_, key, body["data"])
        return key.document_id

    def save(self, type_: dict[str, Any], key: Key, data: dict[str, Any]) -> None:
        """Write one version of a document. Publishing also deletes the draft."""
        attributes: Attributes = type_["attributes"]
        own = {name: value for name, value in data.items() if name in attributes}
        base = self.papers.get(_with(key, draft=True)) or self.papers.get(_with(key, draft=False))
        old = dict(base.data) if base else self.shared(type_, key)
        new = {**old, **{n: self.value(attributes[n], v, old.get(n)) for n, v in own.items()}}
        new = {name: value for name, value in new.items() if not attributes.get(name, {}).get("mappedBy")}
        new["createdAt"] = old.get("createdAt") or self.moment
        self.write(key, new, published=type_["options"]["draftAndPublish"] and not key.draft)
        if not key.draft:
            self.remove(_with(key, draft=True))
        self.share(type_, key, new)
        for name, value in own.items():
            if attributes[name].get("mappedBy"):
                self.link_back(key, attributes[name], value)

    def delete(self, api_id: str, document_id: str | None, locale: str) -> None:
        for key in list(self.papers):
            if (key.api_id, key.document_id) == (api_id, document_id) and locale in ("*", key.locale):
                self.remove(key)

    # --- content of the files -------------------------------------------------------------------------

    def type(self, api_id: str) -> dict[str, Any]:
        for path in (self.root / "content-types").glob("*.json"):
            found: dict[str, Any] = json.loads(path.read_text())
            if api_id in (found["info"]["singularName"], found["info"]["pluralName"]):
                return found
        raise LookupError(api_id)

    def single_type_document_id(self, api_id: str) -> str | None:
        return next((key.document_id for key in self.papers if key.api_id == api_id), None)

    def new_id(self, type_: dict[str, Any]) -> str:
        self.made += 1
        name = f"{type_['info']['singularName']}-{self.made}"
        return name if self.made % 2 or type_["kind"] == "singleType" else f"2024--{name}"

    def shared(self, type_: dict[str, Any], key: Key) -> dict[str, Any]:
        """Return the values that a new locale of a document copies from the other locales."""
        others = (p for k, p in self.papers.items() if _same_document(k, key))
        for paper in others:
            return {
                name: paper.data[name]
                for name, attribute in type_["attributes"].items()
                if name in paper.data and not attribute_localized(attribute)
            }
        return {}

    def share(self, type_: dict[str, Any], key: Key, new: dict[str, Any]) -> None:
        """Write non-localized attributes into the other locales. A draft changes only other drafts."""
        for other, paper in list(self.papers.items()):
            if not localized(type_) or not _same_document(other, key) or other.locale == key.locale:
                continue
            if other.draft or not key.draft:
                common = {
                    name: new[name]
                    for name, attribute in type_["attributes"].items()
                    if name in new and not attribute_localized(attribute)
                }
                self.write(other, {**paper.data, **common}, published="publishedAt" in paper.data)

    def value(self, attribute: dict[str, Any], value: Any, old: Any) -> Any:
        """Convert a value in a request to the file's notation, which refers to related documents by
        documentId.
        """
        if attribute["type"] == "relation":
            targets = related(_listed(old), value)
            if attribute["relation"].endswith("ToMany"):
                return targets
            return targets[-1] if targets else None
        if attribute["type"] == "component" and value is not None:
            inner = self.component(attribute["component"])
            return (
                [self.parts(inner, v) for v in value] if attribute["repeatable"] else self.parts(inner, value)
            )
        if attribute["type"] == "dynamiczone" and value is not None:
            return [self.parts(self.component(v["__component"]), v) for v in value]
        return value

    def component(self, uid: str) -> Attributes:
        path = self.root / "content-types" / "components" / f"{uid.replace('.', '/')}.json"
        found: Attributes = json.loads(path.read_text())["attributes"]
        return found

    def parts(self, attributes: Attributes, data: dict[str, Any]) -> dict[str, Any]:
        return {n: self.value(attributes[n], v, None) if n in attributes else v for n, v in data.items()}

    def link_back(self, key: Key, attribute: dict[str, Any], value: Any) -> None:
        """Write a relation into the other side's files, where it is stored."""
        other_type = self.type(attribute["target"].rpartition(".")[2])
        plural, name = other_type["info"]["pluralName"], attribute["mappedBy"]
        many = other_type["attributes"][name]["relation"].endswith("ToMany")
        papers = {k: p for k, p in self.papers.items() if k.api_id == plural and k.locale == key.locale}
        holding = [k.document_id for k, p in papers.items() if key.document_id in _listed(p.data.get(name))]
        wanted = related(list(dict.fromkeys(holding)), value)
        for other, paper in papers.items():
            here = _listed(paper.data.get(name))
            if (other.document_id in wanted) != (key.document_id in here):
                left = [i for i in here if i != key.document_id]
                now = [*left, key.document_id] if other.document_id in wanted else left
                changed = now if many else (now[-1] if now else None)
                self.write(other, {**paper.data, name: changed}, published="publishedAt" in paper.data)

    # --- files ---------------------------------------------------------------------------------

    @property
    def moment(self) -> str:
        return f"{self.clock:%Y-%m-%dT%H:%M:%S}.000Z"

    def write(self, key: Key, data: dict[str, Any], *, published: bool) -> None:
        data["updatedAt"] = self.moment
        data.pop("publishedAt", None)
        if published:
            data["publishedAt"] = self.moment
        paper = self.papers.get(key) or self.new_paper(key, data)
        paper.data = data
        self.papers[key] = paper
        path = self.path(key, paper)
        path.parent.mkdir(parents=True, exist_ok=True)
        said = {"documentId": key.document_id, **data} if paper.id_in_file else data
        path.write_text(text_of(self.type(key.api_id), paper.ending, said), encoding="utf-8")

    def new_paper(self, key: Key, data: dict[str, Any]) -> Paper:
        """Return the file for a new version, in the same folder and format as the document's
        other versions.
        """
        for other, paper in self.papers.items():
            if _same_document(other, key):
                return Paper(paper.stem, paper.ending, data, paper.id_in_file)
        in_name = key.document_id.startswith("2024--")
        stem = key.document_id.replace("--", "/") if in_name else f"a name of its own {self.made}"
        if self.type(key.api_id)["kind"] == "singleType":
            stem, in_name = key.api_id, False
        return Paper(stem, ENDINGS[self.made % 3], data, not in_name)

    def path(self, key: Key, paper: Paper) -> Path:
        locale = f".{key.locale}" if key.locale != DEFAULT else ""
        name = f"{paper.stem}{locale}{'.draft' if key.draft else ''}.{paper.ending}"
        folder = self.root / "content"
        return folder / name if self.type(key.api_id)["kind"] == "singleType" else folder / key.api_id / name

    def remove(self, key: Key) -> None:
        paper = self.papers.pop(key, None)
        if paper:
            self.path(key, paper).unlink()


def localized(described: dict[str, Any]) -> bool:
    return bool(described.get("pluginOptions", {}).get("i18n", {}).get("localized"))


def attribute_localized(attribute: dict[str, Any]) -> bool:
    """Return whether an attribute is localized. A relation is localized unless the schema says otherwise."""
    said = attribute.get("pluginOptions", {}).get("i18n", {}).get("localized")
    return attribute["type"] == "relation" if said is None else bool(said)


def related(current: list[str], value: Any) -> list[str]:
    """Return the targets of a relation after a request has changed it."""
    if not isinstance(value, dict) or "documentId" in value:
        return list(dict.fromkeys(_target(item) for item in _listed(value)))
    targets = [_target(item) for item in _listed(value["set"])] if "set" in value else list(current)
    for item in _listed(value.get("disconnect")):
        if _target(item) in targets:
            targets.remove(_target(item))
    for item in _listed(value.get("connect")):
        place = item.get("position", {}) if isinstance(item, dict) else {}
        if _target(item) in targets and not place:
            continue
        targets = [target for target in targets if target != _target(item)]
        at = len(targets)
        if place.get("start"):
            at = 0
        elif "before" in place:
            at = targets.index(place["before"])
        elif "after" in place:
            at = targets.index(place["after"]) + 1
        targets.insert(at, _target(item))
    return targets


def _target(item: Any) -> str:
    return str(item["documentId"] if isinstance(item, dict) else item)


def _listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _with(key: Key, *, draft: bool) -> Key:
    return Key(key.api_id, key.document_id, key.locale, draft)


def _same_document(one: Key, other: Key) -> bool:
    return (one.api_id, one.document_id) == (other.api_id, other.document_id)


def text_of(type_: dict[str, Any], ending: str, data: dict[str, Any]) -> str:
    """Return the text of a file."""
    if ending == "json":
        return json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    if ending == "yaml":
        return _yaml(data)
    body = next((n for n, a in type_["attributes"].items() if a["type"] == "richtext" and data.get(n)), None)
    matter = {name: value for name, value in data.items() if name != body}
    return f"---\n{_yaml(matter)}---\n" + (f"\n{data[body]}\n" if body else "")


def _yaml(data: dict[str, Any]) -> str:
    return str(yaml.safe_dump(data, sort_keys=False, allow_unicode=True))
