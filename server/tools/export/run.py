"""Exports a site: its responses, and the media files that they refer to."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from urllib.parse import quote, urlsplit

from server.auth.permissions import Actor
from server.config.model import FILE, Settings
from server.errors import SetupError
from server.history.past import PastStates
from server.schema.spelling import suggestion
from server.service.public_site.redirects import Redirects
from server.site.site import Site, State
from server.storage.media import media_key
from server.tools.export.contents import (
    SiteExport,
    Source,
    find_uploads,
    make_formats,
    opener,
    sources,
    with_base_url,
)
from server.tools.export.folder import Folder, Manifest, Tally, check_target, opened
from server.tools.export.images import ImageMaker, NamedImage, with_images
from server.tools.export.listings import Access
from server.tools.export.publications import redirect_files

Progress = Callable[[int, int], None]  # (done, total)
Bar = Callable[[str], AbstractContextManager[Progress]]
READER = "a read-only token"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """An export's options.

    - `commit`: the commit to export, or "" for the current state.
    - `images`: whether named transformations of images become files.
    """

    role: str = "public"
    everything: bool = False
    drafts: bool = False
    base_url: str = ""
    force: bool = False
    commit: str = ""
    images: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """The result of an export.

    - `unscaled`: the number of images that could not be resized.
    - `unmade`: the number of named transformations that could not be made.
    - `left_out`: the types that the role is not allowed to read.
    - `unwritten`: the number of redirects that a format can't represent.
    - `wrong_aliases`: the number of problems with aliases.
    """

    documents: Mapping[str, int]
    files: int
    unscaled: int
    unmade: int
    left_out: tuple[str, ...]
    tally: Tally
    unwritten: int
    wrong_aliases: int


def export(site: Site, target: Path, options: ExportOptions, bar: Bar) -> Done:
    """Export a site to the folder `target`. Raises SetupError, usually before anything is written."""
    settings = site.state.settings
    access = Access(_actor(settings, options), options.drafts)
    base = _base_url(options.base_url)
    check_target(target, site)
    _check_types(site.state)
    _check_drafts(site.state, access)
    redirects = redirect_files(site.state, Redirects(PastStates(site)))
    with bar("Scaling images") as progress:
        unscaled = make_formats(site, progress)
    state, images = with_images(site.state) if options.images else (site.state, {})
    state = with_base_url(state, base) if base else state
    contents = SiteExport(state, access, redirects.files)
    manifest = Manifest(settings.name, access.actor.name, options.drafts, base, commit=options.commit)
    paths = contents.paths()
    with opened(target, manifest, force=options.force) as folder, bar("Exporting") as progress:
        folder.claim(paths)
        named = _write(contents, folder, len(paths), progress)
        uploads = {f"uploads/{inside}": file for inside, file in sources(site, named).items()}
        wanted = {f"uploads/{inside}": images[inside] for inside in named if inside in images}
        maker = ImageMaker(site)
        made = _make(maker, wanted, bar)
        folder.claim([*uploads, *made])
        folder.remove_gone([*paths, *uploads, *made])
        _copy(folder, uploads, opener(site))
        for path, image in made.items():
            with maker.open(image) as source:
                folder.copy(path, image.request, source)
        tally = folder.finish()
    documents, left_out = _count_documents(contents), _left_out_types(contents)
    files, unmade = len(uploads) + len(made), len(wanted) - len(made)
    return Done(documents, files, unscaled, unmade, left_out, tally, redirects.left, redirects.problems)


def _write(contents: SiteExport, folder: Folder, count: int, progress: Progress) -> set[str]:
    named = {media_key(file.path) or "" for file in contents.media}
    for done, response in enumerate(contents.responses(), 1):
        folder.put(response)
        if b"/uploads/" in response.body:
            named.update(find_uploads(response.body))
        if done % 100 == 0 or done == count:
            progress(done, count)
    return named


def _make(maker: ImageMaker, wanted: Mapping[str, NamedImage], bar: Bar) -> Mapping[str, NamedImage]:
    """Make images, and return those that could be made, by path."""
    with bar("Transforming images") as progress:
        made = maker.make(wanted.values(), progress)
    return {path: image for path, image in sorted(wanted.items()) if image in made}


def _copy(
    folder: Folder, uploads: Mapping[str, Source], open_source: Callable[[Source], BufferedReader]
) -> None:
    for path, file in uploads.items():
        with open_source(file) as source:
            folder.copy(path, "/" + quote(path), source)


def _count_documents(contents: SiteExport) -> Mapping[str, int]:
    # Count a document with several locales only once.
    ids: dict[str, set[str]] = {}
    for listing in contents.listings:
        ids.setdefault(listing.type.uid, set()).update(d.document_id for d in listing.documents)
    return {uid: len(found) for uid, found in ids.items()}


def _left_out_types(contents: SiteExport) -> tuple[str, ...]:
    shown = {listing.type.uid for listing in contents.listings}
    return tuple(t.singular for t in contents.state.schema.content_types if t.uid not in shown)


def _actor(settings: Settings, options: ExportOptions) -> Actor:
    if options.everything:
        return Actor(READER, reading=True)
    if options.role not in settings.roles:
        fix = suggestion(options.role, settings.roles) or "use " + ", ".join(settings.roles)
        raise SetupError("--role", None, f'unknown role "{options.role}"', fix)
    return Actor(options.role, settings.roles[options.role])


def _check_types(state: State) -> None:
    subjects = state.schema.subjects
    for name, wanted in state.settings.export.types.items():
        if name not in subjects:
            fix = suggestion(name, subjects) or "use the singular API id of a content type"
            what = f'export.types contains "{name}", which is not a content type'
            raise SetupError(FILE, wanted.line, what, fix)


def _check_drafts(state: State, access: Access) -> None:
    if access.drafts and not any(access.status(type_) for type_ in state.schema.content_types):
        fix = "grant this permission to the role, or use a different --role, or use --everything"
        raise SetupError(
            "--drafts",
            None,
            f"{access.actor.name} does not have the permission readDraft for any content type",
            fix,
        )


def _base_url(text: str) -> str:
    found = urlsplit(text)
    if text and (
        found.scheme not in ("http", "https") or not found.hostname or found.query or found.fragment
    ):
        fix = "write a URL such as https://example.org"
        raise SetupError("--base-url", None, f'"{text}" is not the URL of a website', fix)
    return text.rstrip("/")
