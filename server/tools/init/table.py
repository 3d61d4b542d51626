"""What `quire init` proposes, as a table for people."""

from collections.abc import Iterator

from server.documents.keys import says
from server.paths import UPLOADS
from server.tools.check import count
from server.tools.init.infer import ProposedAttribute
from server.tools.init.propose import Proposal, ProposedType
from server.tools.init.scan import NEVER_CONTENT
from server.tools.terminal import Part, Style, printable

_PLAIN: Style = {}
_BOLD: Style = {"bold": True}
_QUIET: Style = {"dim": True}
SHOWN = 8  # files that are named one by one


def table(proposal: Proposal) -> Iterator[list[Part]]:
    """The lines of the table: each type with its attributes, then what was left out."""
    for each in proposal.types:
        yield from _type(each, proposal.locales[0] if proposal.locales else "")
        yield []
    for folder, files in proposal.skipped.items():
        reason = f"  {count(files, 'Markdown file')}; {_skipped(folder)}"
        yield [("Not taken: ", _QUIET), (printable(f"{folder}/"), _PLAIN), (reason, _QUIET)]
    if proposal.skipped:
        yield []
    for title, reasons in (("Not taken", proposal.left), ("Can't be read", proposal.unreadable)):
        for path, reason in list(reasons.items())[:SHOWN]:
            yield [(f"{title}: ", _QUIET), (printable(path), _PLAIN), (f"  {printable(reason)}", _QUIET)]
        if len(reasons) > SHOWN:
            yield [(f"{title}: {len(reasons) - SHOWN} more files", _QUIET)]
        if reasons:
            yield []


def _skipped(folder: str) -> str:
    """Why a folder is left out."""
    if folder == UPLOADS:
        return "uploaded files are no documents"
    name = folder.rpartition("/")[2]
    where = "" if name in NEVER_CONTENT else "outside of content/, "
    return f"{where}a folder of this name holds templates, packages or built files"


def _type(each: ProposedType, default: str) -> Iterator[list[Part]]:
    group = each.group
    documents, files = len({member.name for member in group.members}), len(group.members)
    counted = f"{documents} document{'s' * (documents != 1)}"
    if group.localized:
        spoken = sorted({member.locale or default for member in group.members})
        counted += f" in {files} files, {', '.join(spoken)}"
    where = "/api/" + (each.singular if group.single else each.plural)
    yield [(each.singular, _BOLD), (f"  {where}  {counted}", _PLAIN)]
    yield from ([(f"  {pattern}", _QUIET)] for pattern in group.patterns)
    rows = [
        (found.name, _kind(found), _count(found, files), "; ".join(_notes(found)))
        for found in each.attributes
    ]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
    for name, kind, filled, notes in rows:
        shown = f"  {name.ljust(widths[0])}  {kind.ljust(widths[1])}  {filled.rjust(widths[2])}"
        yield [(printable(shown), _PLAIN), (f"  {printable(notes)}" if notes else "", _QUIET)]
    if each.draft_key:
        key = each.draft_key
        drafts = sum(says(member.page.tree, key) for member in each.group.members)
        yield [(f"  {key.name}: {str(key.value).lower()} makes a draft: {drafts} of {files}", _QUIET)]
    if each.has_drafts:
        yield [
            (
                "  some files say that they are drafts: only clients with a token may read this type",
                {"fg": "yellow"},
            )
        ]


def _kind(found: ProposedAttribute) -> str:
    kind = str(found.schema["type"])
    return str(found.schema["relation"]) if kind == "relation" else kind


def _count(found: ProposedAttribute, files: int) -> str:
    return f"all {files}" if found.files == files else f"{found.files} of {files}"


def _notes(found: ProposedAttribute) -> Iterator[str]:
    if found.schema.get("required"):
        yield "required"
    yield from (note if len(note) <= 60 else f"{note[:59]}…" for note in found.notes)
