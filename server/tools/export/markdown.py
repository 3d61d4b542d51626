"""Markdown files in an export (docs/markdown.md)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from server.query import qs
from server.query.serialize import query_string
from server.service.markdown.document import ENDING
from server.service.markdown.read import read_markdown
from server.service.read import Reader
from server.site.site import State
from server.tools.export.listings import ListRequest
from server.tools.export.response import Response


@dataclass(frozen=True, slots=True)
class MarkdownFiles:
    """The Markdown files for a list of documents. They contain all attributes of the documents."""

    state: State
    listing: ListRequest

    @property
    def paths(self) -> Iterator[str]:
        return (path for path, _, _ in self._requests())

    def responses(self) -> Iterator[Response]:
        reader = Reader(self.state, self.listing.type, self.listing.access.actor)
        for path, params, document_id in self._requests():
            url, query = f"/api/{self._name}", query_string(params)
            if document_id is not None:
                url += f"/{quote(document_id, safe='')}"
            found = read_markdown(reader, qs.parse(query), document_id)
            yield Response(path, url + ENDING + (f"?{query}" if query else ""), found.body)

    @property
    def _name(self) -> str:
        type_ = self.listing.type
        return type_.singular if type_.kind == "singleType" else type_.plural

    def _requests(self) -> Iterator[tuple[str, Mapping[str, Any], str | None]]:
        """Yield the path, the query parameters and the document id for each file.

        The id is None if the file contains a list or the document of a single type.
        """
        listing, top = self.listing, f"{self.listing.folder}/{self._name}"
        params = {name: listing.params[name] for name in ("locale", "status") if name in listing.params}
        if listing.type.kind == "singleType":
            yield from ((top + ENDING, params, None) for _ in listing.documents)
            return
        filters = {"filters": listing.params["filters"]} if "filters" in listing.params else {}
        yield top + ENDING, {**params, **filters}, None
        size = self.state.settings.api.page_size.default
        for number in range(1, max(1, -(-len(listing.documents) // size)) + 1):
            page = {"pagination": {"page": str(number)}}
            yield f"{top}/page/{number}{ENDING}", {**params, **filters, **page}, None
        if listing.has_document_files:
            for document in listing.documents:
                yield f"{top}/{document.document_id}{ENDING}", params, document.document_id
