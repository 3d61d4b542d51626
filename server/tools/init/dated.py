"""Pages whose names say their date and slug, as those of Jekyll and Docusaurus: `2024-01-31-hello.md`."""

from dataclasses import replace

from server.documents.keys import read_name
from server.formats.tree import is_null
from server.tools.init.groups import PageGroup
from server.tools.init.infer import ProposedAttribute

PATTERN = "{date}-{slug}"
_KEYS = ("date", "slug")
_TYPES = frozenset({"date", "datetime", "string", "uid"})


def with_dates(group: PageGroup) -> PageGroup | None:
    """The group whose pages say what their names say; None where the name of one says no date."""
    members = []
    for member in group.members:
        told = read_name(PATTERN, frozenset({"date"}), member.name.rpartition("/")[2])
        if not told:
            return None
        said = member.page.tree
        missing = {key: value for key, value in told.items() if is_null(said.get(key))}
        members.append(replace(member, page=replace(member.page, tree={**said, **missing})))
    return None if group.single else replace(group, members=tuple(members))


def of_names(attributes: list[ProposedAttribute], group: PageGroup) -> list[ProposedAttribute] | None:
    """The attributes of a group with dates, None where they don't fit.

    None of these is required, since a file need not say it.
    """
    by_name = {found.name: found for found in attributes}
    if any(by_name[key].schema["type"] not in _TYPES for key in _KEYS):
        return None
    return [_of_names(found, group) if found.name in _KEYS else found for found in attributes]


def _of_names(found: ProposedAttribute, group: PageGroup) -> ProposedAttribute:
    files = sum(not is_null(member.page.tree.get(found.name)) for member in group.members)
    if files == len(group.members):
        return found
    schema = {key: value for key, value in found.schema.items() if key != "required"}
    return replace(found, schema=schema, files=files, notes=(*found.notes, "else from the file's name"))
