"""Links to the former addresses of renamed documents."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from server.site.check.audit import Audit
from server.site.check.links import page_of_document
from server.site.check.page_addresses import addresses_of_page


@dataclass(frozen=True, slots=True)
class OutdatedLinks:
    """The number of links to the former address of a page, and the number of files that contain them."""

    address: str
    current_address: str
    link_count: int
    file_count: int


def find_outdated_links(audit: Audit, new_paths: Mapping[str, str]) -> list[OutdatedLinks]:
    """Count the links to pages whose addresses will change.

    `new_paths` maps the old path of each document to its new path. `audit` contains the site before the move.
    """
    moved: dict[str, tuple[str, str]] = {}
    for path, new in new_paths.items():
        document = audit.documents.get(path)
        before = audit.addresses.address(document) if document else None
        after = audit.addresses.address_after_rename(document, new) if document and before else None
        if before and after and before != after:
            moved.update(dict.fromkeys(addresses_of_page(before), (before, after)))
    found: dict[tuple[str, str], Counter[str]] = {change: Counter() for change in moved.values()}
    for document in audit.documents.values() if moved else ():
        page = page_of_document(audit, document)
        if not page.has_prose:
            continue
        for passage in page.passages:
            for link in passage.prose.links:
                target = link.target.partition("#")[0].partition("?")[0]
                change = moved.get(addresses_of_page(target)[0]) if target.startswith("/") else None
                if change:
                    found[change][document.path] += 1
    return [
        OutdatedLinks(*change, files.total(), len(files)) for change, files in sorted(found.items()) if files
    ]
