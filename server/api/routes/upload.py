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

from server.api.render import render_files
from server.api.request import Identities, answer, parameters, state_of
from server.auth.permissions import Actor, narrow, require
from server.documents.document import Document
from server.errors import NotFoundError, PayloadTooLargeError, StorageError, ValidationError
from server.index.find import find
from server.index.snapshot import View
from server.paths import FOLDER, state_folder
from server.query.ast import Page, Query
from server.query.parse import read_query
from server.schema.model import UPLOAD, Type
from server.site.site import Site, State
from server.storage.media import refusal, upload_path
from server.write import uploading
from server.write.context import Versions
from server.write.validate import Change
from server.write.write import Place, Writer

Form = Mapping[str, str]
MAX_PARTS = 200  # files and fields of one form: each file is open while the form is read
MAX_FIELDS = 1_000_000  # bytes of all that is no file
ABANDONED_S = 3600
_ALL = 10**9
_NO_FILE = "file.notFound"


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
        return answer(render_files(_view(state), query, [_file(state, key)])[0])

    @bp.delete("/files/<key>", strict_slashes=False)
    def delete_file(key: str) -> Response:
        query = asked(identities.permit(request, "upload", "destroy"))
        state = state_of(request)
        found = render_files(_view(state), query, [_file(state, key)])[0]
        site.write(lambda state, versions: uploading.remove(versions, _file(state, key)))
        return answer(found)

    @bp.post("", strict_slashes=False)
    def upload() -> Response:
        actor = identities.permit(request, "upload", "upload")
        limit = state_of(request).settings.upload_limit
        if (request.content_length or 0) > limit:
            raise PayloadTooLargeError(f"The upload is larger than {limit} bytes")
        query, key = asked(actor), parameters(request).get("id")
        with _received(incoming, limit) as (files, form):
            if isinstance(key, str) and key:
                return _change(site, key, files, form, query)
            if not files:
                raise ValidationError("Files are empty")
            return _add(site, files, form, actor, query)

    return bp


def _view(state: State) -> View:
    return View(state.snapshot, state.settings)


def _file(state: State, key: object) -> Document:
    """The media file with a number or document id. Raises NotFoundError."""
    files = state.snapshot.list(state.schema.types[UPLOAD], state.settings.default_locale, "published")
    found = next((f for f in files if str(key) in (str(f.id), f.document_id)), None)
    if found is None:
        raise NotFoundError(_NO_FILE)
    return found


def _sweep(folder: Path) -> None:
    """Remove what an upload left that was cut off by a crash: nobody has written to it for long."""
    for path in folder.glob("*"):
        with suppress(OSError):
            if path.stat().st_mtime < time.time() - ABANDONED_S:
                path.unlink()


@contextmanager
def _received(folder: Path, limit: int) -> Iterator[tuple[list[uploading.Incoming], Form]]:
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
        yield [_incoming(file, info) for file, info in zip(sent, infos, strict=False)], form


def _parsed(parser: FormDataParser) -> tuple[Form, Any]:
    try:
        return parser.parse_from_environ(request.environ)[1:]
    except OSError as error:
        raise StorageError(f"The upload could not be kept: {error.strerror}") from error


def _incoming(file: FileStorage, info: Mapping[str, Any]) -> uploading.Incoming:
    file.stream.close()
    return uploading.Incoming(Path(file.stream.name), file.filename or "file", info, file.mimetype)


def _add(site: Site, received: list[uploading.Incoming], form: Form, actor: Actor, query: Query) -> Response:
    """Store the files, attach them where the form says so, answer the list of them (201)."""

    def prepare(state: State, versions: Versions) -> list[str]:
        paths = [uploading.add(versions, incoming) for incoming in received]
        if form.get("ref"):
            _attach(state, versions, form, actor, [upload_path(path) or path for path in paths])
        return paths

    state, paths = site.write(prepare)
    for path in paths:
        state = site.scale(path)
    files = [state.snapshot.media[upload_path(path) or ""] for path in paths]
    return answer(b"[%b]" % b",".join(render_files(_view(state), query, files)), 201)


def _change(site: Site, key: str, received: list[uploading.Incoming], form: Form, query: Query) -> Response:
    """Change what is said of a file, and its content where the form has one."""
    info = uploading.read_info(form.get("fileInfo"), 1)[0]

    def prepare(state: State, versions: Versions) -> str:
        file = _file(state, key)
        if received:
            uploading.replace_file(versions, file, replace(received[0], info=info))
        else:
            uploading.describe(versions, file, info)
        return file.path

    _, path = site.write(prepare)
    state = site.scale(path)
    return answer(render_files(_view(state), query, [state.snapshot.media[upload_path(path) or ""]])[0])


def _attach(state: State, versions: Versions, form: Form, actor: Actor, new: list[str]) -> None:
    """`ref`, `refId` and `field`: the document whose media attribute gets the files."""
    ref, ref_id, field = (form.get(name, "") for name in ("ref", "refId", "field"))
    type_ = next((t for t in state.schema.content_types if t.uid == ref), None)
    attribute = type_.attributes.get(field) if type_ else None
    if type_ is None or attribute is None or attribute.type != "media" or not ref_id:
        raise ValidationError("ref, refId and field must name a document and its media attribute")
    require(actor, type_, "update")
    refused = next(filter(None, (refusal(attribute, inside) for inside in new)), "")
    if refused:
        raise ValidationError(f"{field} {refused}")
    found = _document(state, type_, ref_id)
    if found is None:
        raise ValidationError(f"There is no document {ref_id} of {ref}")
    current = tuple(found.get(field)) if attribute.multiple else ()
    change = Change({field: (*current, *new) if attribute.multiple else tuple(new[:1])})
    published, draft = versions.of(type_, found.document_id, found.locale)
    place = Place(type_, found.document_id, found.locale, draft=published is None and draft is not None)
    Writer(versions).update(place, change)


def _document(state: State, type_: Type, key: str) -> Document | None:
    """The document with a documentId, in the default locale first, or that version of it with a number."""
    default = state.settings.default_locale
    others = [locale for locale in state.settings.locales if type_.localized and locale != default]
    status = "draft" if type_.draft_publish else "published"
    documents = (d for locale in (default, *others) for d in state.snapshot.list(type_, locale, status))
    return next((d for d in documents if key in (d.document_id, str(d.id))), None)
