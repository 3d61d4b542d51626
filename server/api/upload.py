"""/api/upload: media. Its answers are bare objects and arrays, without the envelope of content."""

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from flask import Blueprint, Response, request
from werkzeug.datastructures import FileStorage

from server import uploading
from server.ask import read_query
from server.context import Identities, answer, parameters
from server.documents import Document
from server.errors import ForbiddenError, NotFoundError, PayloadTooLargeError, ValidationError
from server.find import find
from server.index import View
from server.media import upload_path
from server.permissions import Actor, narrow
from server.query import Page, Query
from server.render import Renderer
from server.schema import UPLOAD
from server.site import Site, State
from server.state import state_folder
from server.validate import Change
from server.versions import Versions
from server.write import Place, Writer

_ALL = 10**9
_NO_FILE = "file.notFound"


def blueprint(site: Site, identities: Identities) -> Blueprint:
    """The routes below `/api/upload`."""
    bp = Blueprint("upload", __name__, url_prefix="/api/upload")

    def allowed(action: str) -> Actor:
        actor = identities.actor(request, site.state.settings)
        if not actor.may("upload", action):
            raise ForbiddenError()
        return actor

    def asked(actor: Actor) -> Query:
        state = site.state
        params = parameters(request)
        query = read_query(state.schema, state.settings, state.schema.types[UPLOAD], params, many=True)
        page = query.page if "pagination" in params else Page(0, _ALL, 1)
        return replace(narrow(query, actor, state.schema), page=page)

    @bp.get("/files", strict_slashes=False)
    def find_files() -> Response:
        query = asked(allowed("find"))
        view = View(site.state.snapshot, site.state.settings)
        return answer(b"[%b]" % b",".join(_rendered(view, query, list(find(view, query).documents))))

    @bp.get("/files/<key>", strict_slashes=False)
    def find_file(key: str) -> Response:
        query = asked(allowed("findOne"))
        view = View(site.state.snapshot, site.state.settings)
        return answer(_rendered(view, query, [_file(site.state, key)])[0])

    @bp.delete("/files/<key>", strict_slashes=False)
    def delete_file(key: str) -> Response:
        query = asked(allowed("destroy"))
        view = View(site.state.snapshot, site.state.settings)
        found = _rendered(view, query, [_file(site.state, key)])[0]
        site.write(lambda state, versions: uploading.remove(versions, _file(state, key)))
        return answer(found)

    @bp.post("", strict_slashes=False)
    def upload() -> Response:
        actor = allowed("upload")
        limit = site.state.settings.upload_limit
        if (request.content_length or 0) > limit:
            raise PayloadTooLargeError(f"The upload is larger than {limit} bytes")
        request.max_content_length = limit
        key = parameters(request).get("id")
        with _received(site) as received:
            if isinstance(key, str) and key:
                return _change(site, key, received, asked(actor))
            if not received:
                raise ValidationError("Files are empty")
            return _add(site, received, asked(actor))

    return bp


def _file(state: State, key: object) -> Document:
    """The media file with a number or document id. Raises NotFoundError."""
    files = state.snapshot.list(state.schema.types[UPLOAD], state.settings.default_locale, "published")
    found = next((f for f in files if str(key) in (str(f.id), f.document_id)), None)
    if found is None:
        raise NotFoundError(_NO_FILE)
    return found


def _rendered(view: View, query: Query, files: list[Document]) -> list[bytes]:
    fields = query.selection.fields or tuple(n for n in query.type.visible if n != "locale")
    selection = replace(query.selection, fields=fields)
    renderer = Renderer(view)
    return [renderer.document(file, selection, file.locale) for file in files]


@contextmanager
def _received(site: Site) -> Iterator[list[uploading.Incoming]]:
    """The files of the request's form, each on disk in a folder of the site's own until it is moved."""
    folder = state_folder(site.root) / "incoming"
    folder.mkdir(mode=0o700, exist_ok=True)
    sent = [file for file in request.files.getlist("files") if file.filename]
    infos = uploading.read_info(request.form.get("fileInfo"), len(sent) or 1)
    with ExitStack() as stack:
        received = []
        for file, info in zip(sent, infos, strict=False):
            path = _save(file, folder, stack)
            received.append(uploading.Incoming(path, file.filename or "file", info, file.mimetype))
        yield received


def _save(file: FileStorage, folder: Path, stack: ExitStack) -> Path:
    descriptor, name = tempfile.mkstemp(dir=folder)
    path = Path(name)
    stack.callback(path.unlink, missing_ok=True)
    with open(descriptor, "wb") as target:
        file.save(target)
    return path


def _add(site: Site, received: list[uploading.Incoming], query: Query) -> Response:
    """Store the files, attach them where the form says so, answer the list of them (201)."""

    def prepare(state: State, versions: Versions) -> list[str]:
        paths = [uploading.add(versions, incoming) for incoming in received]
        _attach(state, versions, paths)
        return paths

    state, paths = site.write(prepare)
    for path in paths:
        site.scale(path)
    state = site.state
    files = [state.snapshot.media[upload_path(path) or ""] for path in paths]
    view = View(state.snapshot, state.settings)
    return answer(b"[%b]" % b",".join(_rendered(view, query, files)), 201)


def _change(site: Site, key: str, received: list[uploading.Incoming], query: Query) -> Response:
    """Change what is said of a file, and its content where the form has one."""
    info = uploading.read_info(request.form.get("fileInfo"), 1)[0]

    def prepare(state: State, versions: Versions) -> str:
        file = _file(state, key)
        if received:
            uploading.replace_file(versions, file, replace(received[0], info=info))
        else:
            uploading.describe(versions, file, info)
        return file.path

    _, path = site.write(prepare)
    site.scale(path)
    state = site.state
    view = View(state.snapshot, state.settings)
    return answer(_rendered(view, query, [state.snapshot.media[upload_path(path) or ""]])[0])


def _attach(state: State, versions: Versions, paths: list[str]) -> None:
    """`ref`, `refId` and `field`: the document whose media attribute gets the files."""
    ref, ref_id, field = (request.form.get(name) for name in ("ref", "refId", "field"))
    if not ref:
        return
    type_ = state.schema.types.get(ref)
    attribute = type_.attributes.get(field or "") if type_ else None
    if type_ is None or attribute is None or attribute.type != "media" or not ref_id:
        raise ValidationError("ref, refId and field must name a document and its media attribute")
    locale = state.settings.default_locale
    status = "draft" if type_.draft_publish else "published"
    documents = state.snapshot.list(type_, locale, status)
    found = next((d for d in documents if ref_id in (d.document_id, str(d.id))), None)
    if found is None:
        raise ValidationError(f"There is no document {ref_id} of {ref}")
    new = tuple(upload_path(path) or path for path in paths)
    current = tuple(found.get(attribute.name)) if attribute.multiple else ()
    change = Change({attribute.name: (*current, *new) if attribute.multiple else new[:1]})
    published, draft = versions.of(type_, found.document_id, locale)
    place = Place(type_, found.document_id, locale, draft=published is None and draft is not None)
    Writer(versions).update(place, change)
