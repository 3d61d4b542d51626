"""/api/upload: media. Its answers are bare objects and arrays, without the envelope of content."""

import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from flask import Blueprint, Response, request
from werkzeug.datastructures import FileStorage
from werkzeug.formparser import FormDataParser

from server.api.identities import Identities
from server.api.render import render_files
from server.api.request import answer, budget_of, parameters, state_of
from server.auth.permissions import Actor, narrow
from server.documents.document import Document
from server.errors import PayloadTooLargeError, StorageError, ValidationError
from server.index.find import find
from server.index.snapshot import View
from server.paths import FOLDER, state_folder
from server.query.ast import Page, Query
from server.query.parse import read_query
from server.schema.model import UPLOAD
from server.site.site import Site, State
from server.storage.media import upload_path
from server.write import uploading
from server.write.attach import Attachment

Form = Mapping[str, str]
MAX_PARTS = 200  # files and fields of one form: each file is open while the form is read
MAX_FIELDS = 1_000_000  # bytes of all that is no file
ABANDONED_S = 3600
_ALL = 10**9


def blueprint(site: Site, identities: Identities) -> Blueprint:
    """The routes below `/api/upload`."""
    bp = Blueprint("upload", __name__, url_prefix="/api/upload")
    incoming = site.root / FOLDER / "incoming"
    _sweep(incoming)

    def asked(actor: Actor) -> Query:
        state = state_of(request)
        params = parameters(request)
        query = read_query(state.schema, state.settings, state.schema.types[UPLOAD], params, many=True)
        page = query.page if "pagination" in params else Page(0, _ALL, 1)
        return replace(narrow(query, actor, state.schema), page=page)

    @bp.get("/files", strict_slashes=False)
    def find_files() -> Response:
        query = asked(identities.permit(request, "upload", "find"))
        view = _view(state_of(request))
        return answer(b"[%b]" % b",".join(render_files(view, query, list(find(view, query).documents))))

    @bp.get("/files/<key>", strict_slashes=False)
    def find_file(key: str) -> Response:
        query = asked(identities.permit(request, "upload", "findOne"))
        state = state_of(request)
        return answer(_rendered(state, query, [_file(state, key)])[0])

    @bp.delete("/files/<key>", strict_slashes=False)
    def delete_file(key: str) -> Response:
        query = asked(identities.permit(request, "upload", "destroy"))
        state = state_of(request)
        removed = _rendered(state, query, [_file(state, key)])[0]
        site.write(uploading.remove, key)
        return answer(removed)

    @bp.post("", strict_slashes=False)
    def upload() -> Response:
        actor = identities.permit(request, "upload", "upload")
        limit = state_of(request).settings.upload_limit
        if (request.content_length or 0) > limit:
            raise PayloadTooLargeError(f"The upload is larger than {limit} bytes")
        query, key = asked(actor), parameters(request).get("id")
        with _received(incoming, limit) as (files, form):
            if isinstance(key, str) and key:
                info = uploading.read_info(form.get("fileInfo"), 1)[0]
                change = uploading.FileChange(key, info, files[0] if files else None)
                state, path = site.write(uploading.change_file, change)
                return answer(_stored(site, state, query, (path,))[0])
            if not files:
                raise ValidationError("Files are empty")
            wanted = uploading.Upload(files, actor, _attachment(form))
            state, paths = site.write(uploading.upload, wanted)
            return answer(b"[%b]" % b",".join(_stored(site, state, query, paths)), 201)

    return bp


def _view(state: State) -> View:
    return View(state.snapshot, state.settings, budget=budget_of(request))


def _rendered(state: State, query: Query, files: list[Document]) -> list[bytes]:
    return render_files(_view(state), query, files)


def _file(state: State, key: str) -> Document:
    """The media file with a number or documentId. Raises NotFoundError."""
    return uploading.find_file(state.snapshot, state.settings.default_locale, key)


def _stored(site: Site, state: State, query: Query, paths: tuple[str, ...]) -> list[bytes]:
    """Files that were just written, with the formats of pictures, as an answer shows them."""
    for path in paths:
        state = site.scale(path)
    return _rendered(state, query, [state.snapshot.media[upload_path(path) or ""] for path in paths])


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
def _received(folder: Path, limit: int) -> Iterator[tuple[tuple[uploading.Incoming, ...], Form]]:
    """The files and fields of the request's form; a file goes to disk as it comes, until it is moved."""
    state_folder(folder.parent.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    with ExitStack() as stack:

        def open_file(*_: Any, **__: Any) -> IO[bytes]:
            file = stack.enter_context(tempfile.NamedTemporaryFile(dir=folder, delete=False))
            stack.callback(Path(file.name).unlink, missing_ok=True)
            return file

        parser = FormDataParser(
            open_file, max_form_memory_size=MAX_FIELDS, max_content_length=limit, max_form_parts=MAX_PARTS
        )
        form, files = _parsed(parser)
        sent = [file for file in files.getlist("files") if file.filename]
        infos = uploading.read_info(form.get("fileInfo"), len(sent) or 1)
        yield tuple(_incoming(file, info) for file, info in zip(sent, infos, strict=False)), form


def _parsed(parser: FormDataParser) -> tuple[Form, Any]:
    try:
        return parser.parse_from_environ(request.environ)[1:]
    except OSError as error:
        raise StorageError(f"The upload could not be kept: {error.strerror}") from error


def _incoming(file: FileStorage, info: Mapping[str, Any]) -> uploading.Incoming:
    file.stream.close()
    return uploading.Incoming(Path(file.stream.name), file.filename or "file", info, file.mimetype)
