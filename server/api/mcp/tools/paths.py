"""Helpers for tools in which a file path identifies the document."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from http import HTTPStatus

from server.api.mcp.json_rpc import Json
from server.api.mcp.rest_client import DocumentVersion, content_path
from server.api.mcp.tools.missing import similar_id
from server.api.mcp.tools.tool import Call
from server.errors import ApiError, NotFoundError
from server.paths import UPLOADS

_MAX_PATH_CHARS = 200
# Files that are checked too, but are not documents.
_OTHER_FILES = (f"{UPLOADS}/", "content-types/", "site.yaml")


def version_at_path(call: Call, branch: str, *, for_writing: bool = False) -> DocumentVersion:
    """Return the document version for the call's `path` argument.

    Raises NotFoundError if no document can have this path.
    """
    path = call.text("path")
    [found] = call.rest.document_versions_at([path], branch, for_writing=for_writing)
    if found is None:
        short = path[:_MAX_PATH_CHARS]
        raise NotFoundError(f'"{short}" is not the path of a document\'s file; find lists the documents')
    return found


def source_path(version: DocumentVersion) -> str:
    return content_path(version.type, version.document_id).replace("/api/", "/source/", 1)


def source_query(version: DocumentVersion) -> Json:
    return {"locale": version.locale, "status": version.status}


def missing_path_error(call: Call, version: DocumentVersion, branch: str) -> NotFoundError:
    at = {"at": branch} if branch else {}
    near = next(filter(None, _similar_paths(call, version, at)), "")
    hint = f'did you mean "{near}"?' if near else "find lists the documents"
    return NotFoundError(f'There is no file "{call.text("path")[:_MAX_PATH_CHARS]}"; {hint}')


def _similar_paths(call: Call, version: DocumentVersion, at: Json) -> Iterator[str]:
    """Yield the paths of other versions of the document, then the paths of a document with a similar id.

    For a version that does not exist or that the caller may not read, yield "" instead.
    """
    other = "draft" if version.status == "published" else "published"
    queries: tuple[Json, ...] = (source_query(version), {"locale": version.locale, "status": other}, {})
    for query in queries[1:]:
        yield _path_of(call, version, query | at)
    if version.document_id and (near := similar_id(call, version.type, version.document_id, at)):
        for query in queries:
            yield _path_of(call, replace(version, document_id=near), query | at)


def _path_of(call: Call, version: DocumentVersion, query: Json) -> str:
    reply = call.rest.send("GET", source_path(version), query)
    return "" if reply.is_error else str(reply.body["data"]["path"])


def unknown_paths(call: Call, paths: Sequence[str], branch: str) -> list[str]:
    try:
        return list(_unknown(call, paths, branch))
    except ApiError:  # The caller may not read files, so it must not learn which ones exist.
        return []


def _unknown(call: Call, paths: Sequence[str], branch: str) -> Iterator[str]:
    checked = [path for path in paths if not path.startswith(_OTHER_FILES)]
    for path, version in zip(checked, call.rest.document_versions_at(checked, branch), strict=True):
        if version is None:
            yield path
            continue
        query = source_query(version) | ({"at": branch} if branch else {})
        reply = call.rest.send("GET", source_path(version), query)
        is_other = not reply.is_error and reply.body["data"]["path"] != path
        if is_other or reply.status == HTTPStatus.NOT_FOUND:
            yield path
