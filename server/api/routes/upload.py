"""/api/upload: media. Its answers are bare objects and arrays, without the envelope of content."""

import posixpath
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

from flask import Response, request
from werkzeug.datastructures import FileStorage, MultiDict
from werkzeug.formparser import FormDataParser

from server.api.request import (
    answer,
    budget_of,
    caller_of,
    parameters,
    require_permission,
    state_of,
    tagged,
    tell_commit,
)
from server.api.routes.handlers import Handlers
from server.api.routes.write_requests import message_of
from server.auth.permissions import narrow
from server.documents.document import Document
from server.errors import NotFoundError, PayloadTooLargeError, StorageError, ValidationError
from server.index.dangling import MEDIA, Key
from server.index.find import Listing, find
from server.index.snapshot import View
from server.paths import FOLDER, state_folder
from server.query.ast import Query
from server.query.parse import read_part, read_query
from server.schema.model import UPLOAD
from server.service.cache_tags import tags_of_document, tags_of_list
from server.service.read import Caller
from server.service.render import list_answer, render_files
from server.service.write import Addressed, Made, Outcome, Prepare, Wanted, Writes
from server.site.site import Site, State
from server.storage.bucket.site_bucket import SiteBucket
from server.storage.media import media_key
from server.write.uploads import uploading
from server.write.uploads.attach import Attachment
from server.write.uploads.file_info import read_info

Form = MultiDict[str, str]
MAX_PARTS = 200  # files and fields of one form: each file is open while the form is read
MAX_FIELDS = 1_000_000  # bytes of all that is no file
ABANDONED_S = 3600
SCALING_S = 10.0
# What a query may say of files, which have neither locales nor drafts; and where it asks for a page.
_QUERIED = ("fields", "filters", "sort", "populate", "_q", "publicationFilter")
_PAGED = (*_QUERIED, "pagination", "page", "pageSize")


def bind(handles: Handlers, site: Site, writes: Writes, bucket: SiteBucket) -> None:
    """Bind the operations below `/api/upload`."""
    incoming = site.root / FOLDER / "incoming"
    _sweep(incoming)

    def asked(subject_action: str, *, paged: bool = False) -> Query:
        """The query of a request; only what says which files and what of them, and maybe which page."""
        actor = require_permission(request, "upload", subject_action)
        state, params = state_of(request), parameters(request)
        wanted = {key: params[key] for key in (_PAGED if paged else _QUERIED) if key in params}
        query = read_query(state.schema, state.settings, state.schema.types[UPLOAD], wanted, many=True)
        return replace(narrow(query, actor, state.schema), page=query.page if paged else read_part(params))

    @handles("findFiles")
    def find_files() -> Response:
        query = asked("find")
        files = _rendered(state_of(request), query, _found(query).documents)
        return _tagged(answer(_listed(files)), query)

    @handles("findFilesPage")
    def find_page() -> Response:
        query = asked("find", paged=True)
        listing = _found(query)
        files = _rendered(state_of(request), query, listing.documents)
        return _tagged(answer(list_answer(files, query.page, listing.total)), query)

    @handles("findOneFile")
    def find_file(key: str) -> Response:
        query = asked("findOne")
        whole = replace(query, selection=replace(query.selection, fields=None))
        state = state_of(request)
        file = _file(state, key)
        shown = answer(_rendered(state, whole, [file])[0])
        return tagged(shown, request, tags_of_document(_view(state), file, whole.selection))

    def stored(caller: Caller, state: State, paths: tuple[str, ...]) -> list[bytes]:
        """Files that were just written, as an answer shows them."""
        if caller.branch is None:
            state = _scaled(site, state, paths)
        files = [state.snapshot.media[media_key(path) or ""] for path in paths]
        return _rendered(state, Query(state.schema.types[UPLOAD]), files)

    def in_bucket(file: uploading.Incoming) -> uploading.Incoming:
        """A received file, which is in the bucket then, where the site has one; else a picture is hashed."""
        ending = uploading.ending_of_upload(file)
        if not site.state.settings.media.store:
            site.image_cache.read_ahead(file.source, ending)
        return replace(file, stored=bucket.keep(site.state.settings, file.source, ending))

    def in_bucket_instead(change: uploading.FileChange) -> uploading.FileChange:
        """A change of a file, whose new content is in the bucket then, where the site has one."""
        if change.file is None:
            return change
        if not site.state.settings.media.store:
            with suppress(NotFoundError):  # The write says so.
                ending = posixpath.splitext(_file(state_of(request), change.key).path)[1]
                site.image_cache.read_ahead(change.file.source, ending)
            return change
        old = _file(state_of(request), change.key)
        uploading.check_replacement(old, change.file)
        ending = posixpath.splitext(old.path)[1]
        kept = bucket.keep(site.state.settings, change.file.source, ending)
        return replace(change, file=replace(change.file, stored=kept))

    def make(
        caller: Caller,
        prepare: Prepare[Wanted, Made],
        wanted: Wanted,
        addressed: Addressed[Made] | None = None,
    ) -> Outcome[Made]:
        return writes.make(caller, prepare, wanted, addressed, message=message_of(request))

    @handles("deleteFile")
    def delete_file(key: str) -> Response:
        require_permission(request, "upload", "destroy")
        state = state_of(request)
        removed = _rendered(state, Query(state.schema.types[UPLOAD]), [_file(state, key)])[0]
        outcome = make(caller_of(request), uploading.remove, key)
        return tell_commit(answer(removed), outcome.commit)

    @handles("uploadFiles")
    def upload() -> Response:
        actor = require_permission(request, "upload", "upload")
        caller = caller_of(request)
        limit = state_of(request).settings.api.upload_limit
        if (request.content_length or 0) > limit:
            raise PayloadTooLargeError(f"The upload is larger than {limit} bytes")
        key = _key(parameters(request).get("id"))
        with _received(incoming, limit) as (files, form):
            if key:
                change = in_bucket_instead(_change(key, files, form))
                changed = make(caller, uploading.change_file, change)
                body = stored(caller, changed.state, (changed.made,))[0]
                return tell_commit(answer(body), changed.commit)
            if not files:
                raise ValidationError("Files are empty")
            described = tuple(in_bucket(one) for one in _described(files, form))
            wanted = uploading.Upload(described, actor, _attachment(form))
            made = make(caller, uploading.upload, wanted, _media_keys)
            body = _listed(stored(caller, made.state, made.made))
            return tell_commit(answer(body, 201), made.commit)


def _tagged(response: Response, query: Query) -> Response:
    """A list of files with its cache tags."""
    return tagged(response, request, tags_of_list(query, state_of(request).schema))


def _media_keys(paths: Iterable[str]) -> list[Key]:
    return [(MEDIA, media_key(path) or path) for path in paths]


def _view(state: State) -> View:
    return View(state.snapshot, state.settings, budget=budget_of(request))


def _key(value: Any) -> str:
    """The file that `id` names; "" where there is no `id`. Raises ValidationError for several."""
    if not isinstance(value, str | None):
        raise ValidationError("File id is required and must be a single value")
    return value or ""


def _found(query: Query) -> Listing:
    return find(_view(state_of(request)), query)


def _rendered(state: State, query: Query, files: Iterable[Document]) -> list[bytes]:
    return render_files(_view(state), query, files)


def _listed(files: list[bytes]) -> bytes:
    return b"[%b]" % b",".join(files)


def _file(state: State, key: str) -> Document:
    """The media file with a number or documentId. Raises NotFoundError."""
    return uploading.find_file(state.snapshot, state.settings.locales.default, key)


def _scaled(site: Site, state: State, paths: tuple[str, ...]) -> State:
    """The state with the formats of pictures that were just written, as far as these were made in SCALING_S.

    Others are made in the background.
    """
    deadline = time.monotonic() + SCALING_S
    for path in paths:
        if time.monotonic() < deadline:
            state = site.scale(path)
    return state


def _described(files: Sequence[FileStorage], form: Form) -> tuple[uploading.Incoming, ...]:
    """The files of a form with what it says of each. Raises ValidationError."""
    infos = read_info(form.getlist("fileInfo"), len(files))
    return tuple(_incoming(file, info) for file, info in zip(files, infos, strict=True))


def _change(key: str, files: Sequence[FileStorage], form: Form) -> uploading.FileChange:
    """What a form changes of a file. Raises ValidationError."""
    if len(files) > 1:
        raise ValidationError("Cannot replace a file with multiple ones")
    info = read_info(form.getlist("fileInfo"), 1)[0]
    return uploading.FileChange(key, info, _incoming(files[0], info) if files else None)


def _attachment(form: Form) -> Attachment | None:
    """The document that the form says the files are for."""
    if not form.get("ref"):
        return None
    return Attachment(form["ref"], form.get("refId", ""), form.get("field", ""))


def _sweep(folder: Path) -> None:
    """Remove what an upload left that was cut off by a crash: nobody has written to it for long."""
    for path in folder.glob("*"):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - ABANDONED_S:
                path.unlink()


@contextmanager
def _received(folder: Path, limit: int) -> Iterator[tuple[Sequence[FileStorage], Form]]:
    """The files and fields of the request's form; a file goes to disk as it comes, until it is moved."""
    with ExitStack() as stack:

        def open_file(*_: Any, **__: Any) -> IO[bytes]:
            file = tempfile.NamedTemporaryFile(dir=folder, delete=False)  # noqa: SIM115
            stack.callback(_discard, file)
            return cast(IO[bytes], file)

        parser = FormDataParser(
            open_file, max_form_memory_size=MAX_FIELDS, max_content_length=limit, max_form_parts=MAX_PARTS
        )
        try:
            state_folder(folder.parent.parent)
            folder.mkdir(mode=0o700, exist_ok=True)
            _, form, files = parser.parse_from_environ(request.environ)
            sent = [file for file in files.getlist("files") if file.filename]
            for file in sent:
                file.stream.close()
        except OSError as error:
            raise StorageError(f"The upload could not be kept: {error.strerror}") from error
        yield ([] if len(sent) == 1 and _is_empty(sent[0]) else sent), form


def _discard(file: Any) -> None:
    """Close and remove a file that was received, if it is still there."""
    with suppress(OSError):  # what it holds may not fit on the disk
        file.close()
    Path(file.name).unlink(missing_ok=True)


def _is_empty(file: FileStorage) -> bool:
    return Path(str(file.stream.name)).stat().st_size == 0


def _incoming(file: FileStorage, info: Mapping[str, Any]) -> uploading.Incoming:
    return uploading.Incoming(Path(file.stream.name), file.filename or "file", info, file.mimetype)
