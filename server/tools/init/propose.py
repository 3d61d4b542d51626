"""Proposal of content types for existing files."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from server.config.model import FILE, LocaleSettings, Settings
from server.documents.file_keys import DRAFT_KEYS, has_draft_value
from server.documents.ids import id_of_name
from server.documents.path_rules import MARKDOWN, Layout
from server.formats.tree import is_null
from server.formats.yaml.writer import yaml_entry
from server.schema.model import DraftKey, Kind, Schema, Type
from server.tools.check import count_text
from server.tools.init.dated import dated_share, file_name_pattern, with_dates_in_names, with_optional_dates
from server.tools.init.folders import TreeFolders
from server.tools.init.groups import PageGroup, PageMember, PageTree, group_pages, is_draft
from server.tools.init.infer import ProposedAttribute, propose_attributes
from server.tools.init.kinds import NO_VALUE
from server.tools.init.naming import PageKind, choose_api_ids, display_name
from server.tools.init.scan import MarkdownPage, Scan
from server.tools.init.skipped import SkippedFolder
from server.tools.init.translations import is_translation, with_translations
from server.tools.terminal import Part, Style, printable

# --- settings -------------------------------------------------------------------------------------


def settings_text(
    name: str,
    locales: Iterable[str],
    readable: Iterable[str],
    comments: Iterable[str] = (),
    *,
    has_history: bool = False,
) -> str:
    """Return the text of a site.yaml that lets the public read the content types in `readable`.

    The first locale is the default locale.
    """
    text, codes = yaml_entry("name", name), list(locales)
    if codes:
        text += f"\nlocales:\n  default: {codes[0]}\n  available: [{', '.join(codes)}]\n"
    text += "\n# Allows requests to combine populate and pagination.\n"
    text += "api:\n  populate_with_pagination: allow\n"
    if has_history:
        text += "\n# Creation and update times come from git; writes do not store them in files.\n"
        text += "timestamps: git\n"
    text += "\n# Everybody can read these types. For anything else, clients need a token.\n"
    text += "".join(f"# {comment}\n" for comment in comments)
    grants = [
        f"    {subject}: [{'find' if subject == 'upload' else 'find, findOne'}]\n" for subject in readable
    ]
    return text + "roles:\n" + ("  public:\n" + "".join(grants) if grants else "  public: {}\n")


# --- propose --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ProposedType:
    """A proposed content type for a group of pages."""

    singular: str
    plural: str
    group: PageGroup
    attributes: tuple[ProposedAttribute, ...]
    other_keys: str | None  # name of the attribute that collects all keys without an attribute of their own
    file_name: str | None  # `options.fileName`, if file names contain dates and slugs
    empty_keys: tuple[str, ...]  # keys that are null in all files, and therefore not attributes

    @property
    def uid(self) -> str:
        return f"api::{self.singular}.{self.singular}"

    @property
    def path(self) -> str:
        return f"content-types/{self.singular}.json"

    @property
    def draft_key(self) -> DraftKey | None:
        return find_draft_key(member.page for member in self.group.members)

    @property
    def has_drafts(self) -> bool:
        # Also check for drafts that the draft key does not mark, because Bifolio would publish them.
        pages = [member.page for member in self.group.members]
        others = [key for key in DRAFT_KEYS if key != self.draft_key]
        return any(
            is_draft(page.path) or any(has_draft_value(page.tree, key) for key in others) for page in pages
        )

    @property
    def has_derived_file_names(self) -> bool:
        has_uid = any(found.schema["type"] == "uid" for found in self.attributes)
        return self.group.single or self.file_name is not None or has_uid

    @property
    def uses_toml(self) -> bool:
        return sum(member.page.toml for member in self.group.members) * 2 > len(self.group.members)


def find_draft_key(pages: Iterable[MarkdownPage]) -> DraftKey | None:
    found = list(pages)
    for key in DRAFT_KEYS:
        values = [page.tree[key.name] for page in found if not is_null(page.tree.get(key.name))]
        if values and all(str(value).lower() in ("true", "false") for value in values):
            return key
    return None


@dataclass(frozen=True)
class Proposal:
    """Proposed content types, locales (the default locale first), and the reason for each omitted file."""

    types: tuple[ProposedType, ...]
    locales: tuple[str, ...]
    omitted: Mapping[str, str]
    unreadable: Mapping[str, str]
    skipped: Mapping[SkippedFolder, int]  # number of Markdown files in each skipped folder
    data: Mapping[str, int]  # number of files in each data folder of a site generator


def propose(root: Path, scan: Scan, locales: tuple[str, ...] = (), used_ids: Iterable[str] = ()) -> Proposal:
    """Propose content types for the files in a folder. `used_ids` are API ids that are already in use."""
    translations = [page for path, page in scan.pages.items() if is_translation(path)]
    originals = {path: page for path, page in scan.pages.items() if not is_translation(path)}
    tree: PageTree = group_pages(root, originals, locales)
    if translations:
        default = TreeFolders(root, tuple(scan.pages)).default_locale or "en"
        tree = with_translations(tree, translations, locales[0] if locales else default)
    tree = _regroup_by_path(tree, scan, tuple(dict.fromkeys((*locales, *tree.locales))) or ("en",))
    named: list[tuple[str, str, PageGroup]] = []
    for each in sorted(tree.groups, key=lambda g: (g.single, g.folder)):
        used = {*used_ids, *(word for s, p, _ in named for word in (s, p))}
        ids = choose_api_ids(each.folder, used, single=each.single, kind=_kind_of_pages(each))
        named.append((*ids, each))
    names = {
        f"api::{singular}.{singular}": frozenset(id_of_name(m.name) for m in each.members)
        for singular, _, each in named
        if not each.single
    }
    types = []
    for singular, plural, each in named:
        uid = f"api::{singular}.{singular}"
        attributes, rest = propose_attributes(each, names, uid)
        dated = with_dates_in_names(each)
        by_name = with_optional_dates(propose_attributes(dated, names, uid)[0], each) if dated else None
        attributes = by_name or attributes
        file_name = file_name_pattern(each, by_name) if by_name else None
        key = find_draft_key(member.page for member in each.members)
        empty = tuple(found.name for found in attributes if NO_VALUE in found.notes)
        dropped = {*empty, key.name if key else ""}
        kept = tuple(found for found in attributes if found.name not in dropped)
        types.append(
            ProposedType(singular, plural, each, kept, rest.name if rest else None, file_name, empty)
        )
    types.sort(key=lambda made: (made.group.single, -len(made.group.members)))
    spoken = tuple(dict.fromkeys((*locales, *tree.locales)))
    claimed = {member.page.path for each in tree.groups for member in each.members}
    skipped = Counter(scan.skipped[path] for path in sorted(scan.skipped) if path not in claimed)
    return Proposal(tuple(types), spoken, tree.omitted, scan.unreadable, skipped, scan.data)


def _regroup_by_path(tree: PageTree, scan: Scan, locales: tuple[str, ...]) -> PageTree:
    """Move each file to the group that a server would assign it to, according to its path."""
    types = {}
    for i, each in enumerate(tree.groups):
        kind: Kind = "singleType" if each.single else "collectionType"
        name, localized = f"type{i:06d}", each.localized
        types[name] = Type(
            f"api::{name}.{name}", kind, name, name, name, {}, localized=localized, files=each.patterns
        )
    layout = Layout(
        Schema({t.uid: t for t in types.values()}), Settings(locales=LocaleSettings(locales[0], locales))
    )
    members: dict[str, list[PageMember]] = {name: [] for name in types}
    for path, page in sorted({**scan.others, **scan.pages}.items()):
        claim = layout.claim(path)
        if claim:
            locale = claim.locale if claim.locale != locales[0] else None
            members[claim.type.singular].append(PageMember(page, claim.name, locale))
    groups = [replace(g, members=tuple(m)) for g, m in zip(tree.groups, members.values(), strict=True) if m]
    claimed = {member.page.path for each in groups for member in each.members}
    return replace(
        tree, groups=tuple(groups), omitted={p: r for p, r in tree.omitted.items() if p not in claimed}
    )


def _kind_of_pages(group: PageGroup) -> PageKind:
    pages = [member.page for member in group.members]
    if not any(page.path.endswith(MARKDOWN) for page in pages):
        return "entry"
    signed = sum(not is_null(page.tree.get("author", page.tree.get("authors"))) for page in pages)
    dated = not group.single and dated_share(group) == 1
    return "post" if dated or signed >= 0.9 * len(pages) > 1 else "page"


def proposed_files(proposal: Proposal, name: str, *, has_history: bool = False) -> Mapping[str, str]:
    made = {each.path: _schema(each) for each in proposal.types}
    made[FILE] = _settings(proposal, name, has_history=has_history)
    return made


def _schema(proposed_type: ProposedType) -> str:
    files = proposed_type.group.patterns
    key = proposed_type.draft_key
    options: dict[str, Any] = {"draftAndPublish": key is not None}
    if key:
        options["draftWhen"] = {key.name: key.value}
    options["files"] = files[0] if len(files) == 1 else list(files)
    if proposed_type.uses_toml:
        options["frontMatter"] = "toml"
    if proposed_type.file_name:
        options["fileName"] = proposed_type.file_name
    if proposed_type.other_keys:
        options["otherKeys"] = proposed_type.other_keys
    schema = {
        "kind": "singleType" if proposed_type.group.single else "collectionType",
        "info": {
            "singularName": proposed_type.singular,
            "pluralName": proposed_type.plural,
            "displayName": display_name(proposed_type.singular),
        },
        "options": options,
        "pluginOptions": {"i18n": {"localized": True}} if proposed_type.group.localized else {},
        "attributes": {found.name: found.schema for found in proposed_type.attributes},
    }
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _settings(proposal: Proposal, name: str, *, has_history: bool) -> str:
    what = "some of its files are marked as drafts, but Bifolio would publish them."
    comments = [f"{each.singular} is not listed: {what}" for each in proposal.types if each.has_drafts]
    readable = [each.singular for each in proposal.types if not each.has_drafts]
    return settings_text(name, proposal.locales, readable, comments, has_history=has_history)


# --- table ----------------------------------------------------------------------------------------

_PLAIN: Style = {}
_BOLD: Style = {"bold": True}
_QUIET: Style = {"dim": True}
MAX_SHOWN_FILES = 8  # Further files are only counted.


def table_lines(proposal: Proposal) -> Iterator[list[Part]]:
    """Yield the lines of a table that lists the content types and the omitted files."""
    for each in proposal.types:
        yield from _type(each, proposal.locales[0] if proposal.locales else "")
        yield []
    if public := [each.singular for each in proposal.types if not (each.draft_key or each.has_drafts)]:
        yield [("Types without drafts: ", _QUIET), (_listed(public), _PLAIN)]
        yield [("  new documents are public immediately; to use drafts, set options.draftAndPublish", _QUIET)]
        yield []
    if unnamed := [each.singular for each in proposal.types if not each.has_derived_file_names]:
        yield [("Types with random names for new files: ", _QUIET), (_listed(unnamed), _PLAIN)]
        yield [("  to choose the names, add a uid attribute or set options.fileName", _QUIET)]
        yield []
    for folder, files in proposal.skipped.items():
        reason = f"  {count_text(files, 'Markdown file')}; {folder.reason}"
        yield [("Left out: ", _QUIET), (printable(f"{folder.path}/"), _PLAIN), (reason, _QUIET)]
    for path, files in proposal.data.items():
        what = f"  {count_text(files, 'YAML, JSON or TOML file')}; to serve them, see docs/existing-sites.md"
        yield [("Left out: ", _QUIET), (printable(f"{path}/"), _PLAIN), (what, _QUIET)]
    if proposal.skipped or proposal.data:
        yield []
    for title, reasons in (("Left out", proposal.omitted), ("Can't be read", proposal.unreadable)):
        for path, reason in list(reasons.items())[:MAX_SHOWN_FILES]:
            yield [(f"{title}: ", _QUIET), (printable(path), _PLAIN), (f"  {printable(reason)}", _QUIET)]
        if len(reasons) > MAX_SHOWN_FILES:
            yield [(f"{title}: {len(reasons) - MAX_SHOWN_FILES} more files", _QUIET)]
        if reasons:
            yield []


def _type(type_: ProposedType, default: str) -> Iterator[list[Part]]:
    group = type_.group
    documents, files = len({member.name for member in group.members}), len(group.members)
    counted = f"{documents} document{'s' * (documents != 1)}"
    if group.localized:
        spoken = sorted({member.locale or default for member in group.members})
        counted += f" in {files} files, {', '.join(spoken)}"
    where = "/api/" + (type_.singular if group.single else type_.plural)
    yield [(type_.singular, _BOLD), (f"  {where}  {counted}", _PLAIN)]
    yield from ([(f"  {pattern}", _QUIET)] for pattern in group.patterns)
    if type_.file_name:
        yield [(f"  new files: {type_.file_name}", _QUIET)]
    rows = [
        (found.name, _kind(found), _count(found, files), "; ".join(_notes(found)))
        for found in type_.attributes
    ]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    for name, kind, filled, notes in rows:
        shown = f"  {name.ljust(widths[0])}  {kind.ljust(widths[1])}  {filled.rjust(widths[2])}"
        yield [(printable(shown), _PLAIN), (f"  {printable(notes)}" if notes else "", _QUIET)]
    if type_.empty_keys:
        yield [
            (
                f"  left out, because no file has a value: {printable(_listed(list(type_.empty_keys)))}",
                _QUIET,
            )
        ]
    if type_.draft_key:
        key = type_.draft_key
        drafts = sum(has_draft_value(member.page.tree, key) for member in type_.group.members)
        yield [(f"  drafts: files with {key.name}: {str(key.value).lower()} ({drafts} of {files})", _QUIET)]
    if type_.has_drafts:
        yield [
            (
                "  some files are marked as drafts, so only clients with a token can read this type",
                {"fg": "yellow"},
            )
        ]


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:MAX_SHOWN_FILES])
    return shown + (f" and {len(names) - MAX_SHOWN_FILES} more" if len(names) > MAX_SHOWN_FILES else "")


def _kind(attribute: ProposedAttribute) -> str:
    kind = str(attribute.schema["type"])
    return str(attribute.schema["relation"]) if kind == "relation" else kind


def _count(attribute: ProposedAttribute, files: int) -> str:
    return f"all {files}" if attribute.file_count == files else f"{attribute.file_count} of {files}"


def _notes(attribute: ProposedAttribute) -> Iterator[str]:
    if attribute.schema.get("required"):
        yield "required"
    yield from (note if len(note) <= 60 else f"{note[:59]}…" for note in attribute.notes)
