"""Pages with dates in their file names, such as `2024-01-31-hello.md`."""

from collections import Counter
from dataclasses import replace

from server.documents.file_keys import read_file_name
from server.formats.tree import Tree, is_null
from server.schema.model import DATE_PARTS, DATE_TYPES
from server.tools.init.groups import PageGroup, PageMember
from server.tools.init.infer import ProposedAttribute

PATTERN = "{date}-{slug}"
# minimum share of files with dates; the share can be below 1 because of files such as `news/_index.md`
MIN_DATED_SHARE = 0.9
_KEYS = ("date", "slug")
_TYPES = frozenset({"date", "datetime", "string", "uid"})


def with_dates_in_names(group: PageGroup) -> PageGroup | None:
    """Return the group with each page's missing date and slug filled in from its file name.

    Return None if too few file names contain a date.
    """
    if group.single or dated_share(group) < MIN_DATED_SHARE:
        return None
    members = []
    for member in group.members:
        tree = member.page.tree
        missing = {key: value for key, value in _read(member).items() if is_null(tree.get(key))}
        members.append(replace(member, page=replace(member.page, tree={**tree, **missing})))
    return replace(group, members=tuple(members))


def dated_share(group: PageGroup) -> float:
    return sum(bool(_read(member)) for member in group.members) / len(group.members)


def file_name_pattern(group: PageGroup, attributes: list[ProposedAttribute]) -> str:
    if not any(found.name == "date" and found.schema["type"] in DATE_TYPES for found in attributes):
        return PATTERN
    counts = Counter(_date_folder_pattern(member) for member in group.members)
    ((folders, _),) = counts.most_common(1)
    return f"{folders}{PATTERN}"


def _date_folder_pattern(member: PageMember) -> str:
    above = member.name.split("/")[:-1]
    date = str(_read(member).get("date", ""))
    named = {date[part]: f"{{date.{name}}}/" for name, part in reversed(tuple(DATE_PARTS.items()))}
    return "".join(named[folder] for folder in above) if date and named.keys() >= set(above) else ""


def _read(member: PageMember) -> dict[str, Tree]:
    return read_file_name(PATTERN, frozenset({"date"}), member.name.rpartition("/")[2])


def with_optional_dates(
    attributes: list[ProposedAttribute], group: PageGroup
) -> list[ProposedAttribute] | None:
    """Make the attributes `date` and `slug` optional.

    Return None if one of them has a type that does not fit the values in file names.
    """
    by_name = {found.name: found for found in attributes}
    if any(by_name[key].schema["type"] not in _TYPES for key in _KEYS):
        return None
    return [_without_required(found, group) if found.name in _KEYS else found for found in attributes]


def _without_required(attribute: ProposedAttribute, group: PageGroup) -> ProposedAttribute:
    files = sum(not is_null(member.page.tree.get(attribute.name)) for member in group.members)
    if files == len(group.members):
        return attribute
    schema = {key: value for key, value in attribute.schema.items() if key != "required"}
    return replace(
        attribute, schema=schema, file_count=files, notes=(*attribute.notes, "or from the file name")
    )
