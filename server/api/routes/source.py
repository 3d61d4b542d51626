"""Handlers for `/source`."""

from collections.abc import Iterable, Sequence
from typing import Any

from flask import Response, request

from server.api.request import add_commit_header, answer, caller_of, parameters, read_body, requested_commit
from server.api.response import PRIVATE_REVALIDATE
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import (
    DRY_RUN,
    answer_files,
    commit_message,
    is_dry_run,
    required_if_match,
)
from server.errors import ValidationError
from server.service.cache_tags import tag_of
from server.service.render import dumps
from server.service.source import (
    NewSource,
    Source,
    SourceFile,
    find_source,
    read_source,
    replace_source,
    sibling_files,
    try_source,
)
from server.service.write import Writes
from server.site.site import Site

_PARAMETERS = ("locale", "status", DRY_RUN)


def bind(handles: Handlers, site: Site, writes: Writes) -> None:
    """Register the handlers."""

    def find(api_id: str, document_id: str, *, to_write: bool = False) -> SourceFile:
        params = parameters(request)
        caller, today = caller_of(request), site.state.schema
        found = find_source(caller, api_id, document_id, params, today, to_write=to_write)
        _require_known(params, (*_PARAMETERS, "branch") if to_write else _PARAMETERS)
        return found

    @handles("replaceSingleSource")
    def replace_single(api_id: str) -> Response:
        return replace_text(api_id, "")

    @handles("replaceDocumentSource")
    def replace_one(api_id: str, document_id: str) -> Response:
        return replace_text(api_id, document_id)

    def replace_text(api_id: str, document_id: str) -> Response:
        file = find(api_id, document_id, to_write=True)
        new = _new_source(read_body(request))
        if is_dry_run():
            return answer_files(try_source(writes, file, new))
        file, source, commit = replace_source(writes, file, new, commit_message(request))
        return add_commit_header(shown(file, source), commit)

    @handles("findSingleSource")
    def single(api_id: str) -> Response:
        return read(find(api_id, ""))

    @handles("findDocumentSource")
    def one(api_id: str, document_id: str) -> Response:
        return read(find(api_id, document_id))

    def read(file: SourceFile) -> Response:
        return shown(file, read_source(site, file, requested_commit(request)))

    def shown(file: SourceFile, source: Source) -> Response:
        document, problem = file.document, source.problem
        data = {
            "path": document.path,
            "locale": document.locale,
            "status": document.status,
            "text": source.text,
            "otherKeys": source.other_keys,
            "problem": problem and {"line": problem.line, "message": problem.message, "fix": problem.fix},
        }
        files = [{"path": d.path, "locale": d.locale, "status": d.status} for d in sibling_files(file)]
        body = dumps({"data": data, "meta": {"files": files}})
        file.caller.budget.write(len(body))
        response = answer(body, cache_control=PRIVATE_REVALIDATE)
        response.headers["ETag"] = tag_of(source.version, body)
        return response


def _require_known(names: Iterable[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise ValidationError(f'Unknown parameter "{name[:100]}"; use {" or ".join(known)}')


def _new_source(body: Any) -> NewSource:
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, dict) or len(data) != 1 or not {"text", "otherKeys"} >= data.keys():
        raise ValidationError(
            'The request body must look like {"data": {"text": "…"}} or {"data": {"otherKeys": "…"}}'
        )
    [(name, text)] = data.items()
    if not isinstance(text, str):
        raise ValidationError(f'"{name}" must be a string')
    if_match = required_if_match()
    return NewSource(if_match, text=text) if name == "text" else NewSource(if_match, other_keys=text)
