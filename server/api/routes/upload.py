"""Handlers for /api/upload. As in Strapi, the responses have no `data` envelope."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, cast

from flask import Response, request
from werkzeug.datastructures import FileStorage, MultiDict
from werkzeug.formparser import FormDataParser

from server.api.request import (
    add_commit_header,
    answer,
    caller_of,
    parameters,
    prefers,
    read_body,
    require_permission,
    state_of,
    with_cache_tags,
)
from server.api.response import PRIVATE_REVALIDATE
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import UNDO, add_undo_header, answer_files, commit_message, is_dry_run
from server.auth.permissions import may_find
from server.errors import PayloadTooLargeError, ValidationError
from server.paths import STATE_FOLDER, state_folder
from server.query.ast import Query
from server.schema.model import UPLOAD
from server.service.cache_tags import tags_of_document, tags_of_list, tags_of_types
from server.service.media.library import UNUSED, find_in_library, list_folders, list_uses
from server.service.media.moving import move_file, preview_move
from server.service.media.uploads import Uploads, find_file, find_files, parse_media_query, render, view_of
from server.service.read import Caller
from server.service.render import dumps, list_response
from server.service.write import Writes
from server.site.site import Site
from server.storage.bucket.site_bucket import SiteBucket
from server.storage.files import storage_error
from server.write.uploads import uploading
from server.write.uploads.attach import Attachment
from server.write.uploads.file_info import read_info, read_previous

Form = MultiDict[str, str]
# Maximum number of files and fields in a form. It is low, because all files are open during parsing.
MAX_PARTS = 200
MAX_FIELDS_BYTES = 1_000_000  # Size limit for all fields of a form together.


def bind(handles: Handlers, site: Site, writes: Writes, bucket: SiteBucket) -> None:
    """Register the handlers."""
    incoming = site.root / STATE_FOLDER / "incoming"
    uploads = Uploads(site, writes, bucket)

    def asked(action: str, *, paged: bool = False) -> tuple[Caller, Query]:
        require_permission(request, "upload", action)
        caller = caller_of(request)
        return caller, parse_media_query(caller, parameters(request), paged=paged)

    @handles("findFiles")
    def list_files() -> Response:
        caller, query = asked("find")
        files = render(caller, query, find_files(caller, query).documents)
        return _with_cache_tags(answer(_list_answer(files)), query)

    @handles("findFilesPage")
    def list_page() -> Response:
        caller, query = asked("find", paged=True)
        params = parameters(request)
        if UNUSED in params:  # It reveals whether hidden documents use a file.
            require_permission(request, "upload", "destroy")
        listing = find_in_library(caller, query, params)
        body = list_response(render(caller, query, listing.documents), query.page, listing.total)
        if UNUSED in params:
            # Changes of hidden documents do not invalidate the response by its tags, so it is private.
            shown = answer(body, cache_control=PRIVATE_REVALIDATE)
            return with_cache_tags(shown, request, _tags_of_visible(caller))
        return _with_cache_tags(answer(body), query)

    @handles("findFolders")
    def show_folders() -> Response:
        require_permission(request, "upload", "find")
        caller = caller_of(request)
        return with_cache_tags(
            answer(dumps(list_folders(caller))), request, tags_of_types([UPLOAD], caller.state.schema)
        )

    @handles("findFileUsage")
    def show_usage(key: str) -> Response:
        require_permission(request, "upload", "findOne")
        caller = caller_of(request)
        shown = answer(dumps(list_uses(caller, key)), cache_control=PRIVATE_REVALIDATE)
        return with_cache_tags(shown, request, _tags_of_visible(caller))

    @handles("findOneFile")
    def show_file(key: str) -> Response:
        caller, query = asked("findOne")
        whole = query._replace(selection=query.selection._replace(fields=None))
        file = find_file(caller.state, key)
        shown = answer(render(caller, whole, [file])[0])
        return with_cache_tags(shown, request, tags_of_document(view_of(caller), file, whole.selection))

    @handles("deleteFile")
    def delete_file(key: str) -> Response:
        require_permission(request, "upload", "destroy")
        caller = caller_of(request)
        file = find_file(caller.state, key)
        removed = render(caller, Query(caller.state.schema.types[UPLOAD]), [file])[0]
        outcome = uploads.remove(caller, key, commit_message(request), undo=prefers(request, UNDO))
        return add_commit_header(add_undo_header(answer(removed), outcome.undo), outcome.commit)

    @handles("moveFile")
    def move(key: str) -> Response:
        require_permission(request, "upload", "upload")
        require_permission(request, "upload", "destroy")
        caller, body = caller_of(request), read_body(request)
        if is_dry_run():
            return answer_files(preview_move(writes, caller, key, body))
        moved = move_file(writes, caller, key, body, commit_message(request), undo=prefers(request, UNDO))
        meta = {"documents": moved.changed_files, "links": [asdict(link) for link in moved.unchanged_links]}
        shown = answer(b'{"data":%b,"meta":%b}' % (moved.file_json, dumps(meta)))
        return add_commit_header(add_undo_header(shown, moved.undo), moved.commit)

    @handles("uploadFiles")
    def upload() -> Response:
        require_permission(request, "upload", "upload")
        caller = caller_of(request)
        limit = caller.state.settings.api.upload_limit
        if (request.content_length or 0) > limit:
            raise PayloadTooLargeError(f"The upload is larger than {limit} bytes")
        key = _key(parameters(request).get("id"))
        with _receive_form(incoming, limit) as (files, form):
            if key:
                undo = prefers(request, UNDO)
                changed = uploads.change(
                    caller, _change(key, files, form), commit_message(request), undo=undo
                )
                return add_commit_header(
                    add_undo_header(answer(changed.files_json[0]), changed.undo), changed.commit
                )
            if not files:
                raise ValidationError("Files are empty")
            described = _read_files(files, form)
            made = uploads.upload(caller, described, _attachment(form), commit_message(request))
            return add_commit_header(answer(_list_answer(made.files_json), 201), made.commit)


def _tags_of_visible(caller: Caller) -> Iterator[str]:
    """Yield the tags of the content types that the caller may find.

    Other tags would reveal that their types exist.
    """
    schema = caller.state.schema
    return tags_of_types((uid for uid in schema.types if may_find(caller.actor, uid)), schema)


def _with_cache_tags(response: Response, query: Query) -> Response:
    return with_cache_tags(response, request, tags_of_list(query, state_of(request).schema))


def _key(value: Any) -> str:
    if not isinstance(value, str | None):
        raise ValidationError("File id is required and must be a single value")
    return value or ""


def _list_answer(files: list[bytes]) -> bytes:
    return b"[%b]" % b",".join(files)


def _read_files(files: Sequence[FileStorage], form: Form) -> tuple[uploading.ReceivedFile, ...]:
    infos = read_info(form.getlist("fileInfo"), len(files), new=True)
    return tuple(_incoming(file, info) for file, info in zip(files, infos, strict=True))


def _change(key: str, files: Sequence[FileStorage], form: Form) -> uploading.FileChange:
    if len(files) > 1:
        raise ValidationError("Cannot replace a file with multiple ones")
    info = read_info(form.getlist("fileInfo"), 1)[0]
    previous = read_previous(form.getlist("previous"))
    return uploading.FileChange(key, info, _incoming(files[0], info) if files else None, previous)


def _attachment(form: Form) -> Attachment | None:
    if not form.get("ref"):
        return None
    return Attachment(form["ref"], form.get("refId", ""), form.get("field", ""))


@contextmanager
def _receive_form(folder: Path, limit: int) -> Iterator[tuple[Sequence[FileStorage], Form]]:
    """Context manager: parse the form in the request, and store its files in `folder`.

    On exit, files that have not been moved are deleted. Raises StorageError if the files can't be stored.
    """
    with ExitStack() as stack:

        def open_file(*_: Any, **__: Any) -> IO[bytes]:
            file = tempfile.NamedTemporaryFile(dir=folder, delete=False)  # noqa: SIM115
            stack.callback(_discard, file)
            return cast(IO[bytes], file)

        parser = FormDataParser(
            open_file,
            max_form_memory_size=MAX_FIELDS_BYTES,
            max_content_length=limit,
            max_form_parts=MAX_PARTS,
        )
        try:
            state_folder(folder.parent.parent)
            folder.mkdir(mode=0o700, exist_ok=True)
            _, form, files = parser.parse_from_environ(request.environ)
            sent = [file for file in files.getlist("files") if file.filename]
            for file in sent:
                file.stream.close()
        except OSError as error:
            raise storage_error("The uploaded files can't be stored", error, folder.parent.parent) from error
        yield ([] if len(sent) == 1 and _is_empty(sent[0]) else sent), form


def _discard(file: Any) -> None:
    with suppress(OSError):  # Buffered data can't be written if the disk is full.
        file.close()
    Path(file.name).unlink(missing_ok=True)


def _is_empty(file: FileStorage) -> bool:
    return Path(str(file.stream.name)).stat().st_size == 0


def _incoming(file: FileStorage, info: Mapping[str, Any]) -> uploading.ReceivedFile:
    return uploading.ReceivedFile(Path(file.stream.name), file.filename or "file", info, file.mimetype)
