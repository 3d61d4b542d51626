"""Translations in Docusaurus projects, in folders such as `i18n/fr/`."""

import re
from collections.abc import Iterable
from dataclasses import replace

from server.tools.init.groups import PageGroup, PageMember, PageTree
from server.tools.init.locale_folders import is_locale
from server.tools.init.scan import MarkdownPage

_PLUGIN = "docusaurus-plugin-content-"
_PATH = re.compile(
    rf"(?P<project>(?:.*/)?)i18n/(?P<locale>[^/]+)/{_PLUGIN}(?P<folder>docs/current|blog)/(?P<name>.+)"
)


def is_translation(path: str) -> bool:
    found = _PATH.fullmatch(path)
    return found is not None and is_locale(found["locale"])


def with_translations(tree: PageTree, pages: Iterable[MarkdownPage], default: str) -> PageTree:
    """Add each translation to the group that contains the original page.

    `default` is the locale of the originals.
    """
    groups, locales = list(tree.groups), dict.fromkeys(tree.locales or (default,))
    for page in pages:
        found = _PATH.fullmatch(page.path)
        if found is None:
            continue
        folder, ending = found["folder"], "." + page.path.rpartition(".")[2]
        source = f"{found['project']}{folder.partition('/')[0]}/{{name}}"
        at = next(
            (i for i, each in enumerate(groups) if any(p.startswith(source) for p in each.patterns)), None
        )
        if at is None:
            continue
        pattern = f"{found['project']}i18n/{{locale}}/{_PLUGIN}{folder}/{{name}}{ending}"
        name = found["name"].removesuffix(ending)
        groups[at] = _with(groups[at], pattern, PageMember(page, name, found["locale"]))
        locales[found["locale"]] = None
    taken = {member.page.path for each in groups for member in each.members}
    omitted = {page.path: "a translation without its original" for page in pages if page.path not in taken}
    spoken = tuple(locales) if len(locales) > 1 else tree.locales
    return replace(tree, groups=tuple(groups), locales=spoken, omitted={**tree.omitted, **omitted})


def _with(group: PageGroup, pattern: str, member: PageMember) -> PageGroup:
    patterns = tuple(dict.fromkeys((*group.patterns, pattern)))
    return replace(group, patterns=patterns, members=(*group.members, member))
