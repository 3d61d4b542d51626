"""Export of a site to a folder."""

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
    create_resized_images,
    file_opener,
    possible_upload_paths,
    upload_sources,
    with_base_url,
)
from server.tools.export.folder import FileCounts, Folder, Manifest, check_target, open_folder
from server.tools.export.images import CustomFormatImage, CustomFormatRenderer, with_image_paths
from server.tools.export.listings import Access
from server.tools.export.publications import redirect_files

Progress = Callable[[int, int], None]  # (done, total)
Bar = Callable[[str], AbstractContextManager[Progress]]
READER = "a read-only token"


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """The options of an export.

    If `everything` is set, everything that a read-only token can read is exported. `commit` is the commit to
    export, or "" for the current state of the site.
    """

    role: str = "public"
    everything: bool = False
    drafts: bool = False
    base_url: str = ""
    force: bool = False
    commit: str = ""
    images: bool = False


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The result of an export: what was exported, and how many items failed or were left out."""

    documents: Mapping[str, int]
    file_count: int
    unscaled_count: int
    failed_image_count: int
    unreadable_types: tuple[str, ...]
    counts: FileCounts
    unsupported_redirect_count: int
    invalid_alias_count: int


def export(site: Site, target: Path, options: ExportOptions, bar: Bar) -> ExportResult:
    """Export a site to the folder `target`.

    Raises SetupError if the options or settings are invalid, or if the folder can't be used.
    """
    settings = site.state.settings
    access = Access(_actor(settings, options), options.drafts)
    base = _base_url(options.base_url)
    check_target(target, site)
    _check_types(site.state)
    _check_drafts(site.state, access)
    redirects = redirect_files(site.state, Redirects(PastStates(site)))
    with bar("Scaling images") as progress:
        unscaled = create_resized_images(site, progress)
    state, images = with_image_paths(site.state) if options.images else (site.state, {})
    state = with_base_url(state, base) if base else state
    contents = SiteExport(state, access, redirects.files)
    manifest = Manifest(settings.name, access.actor.name, options.drafts, base, commit=options.commit)
    paths = contents.paths()
    with open_folder(target, manifest, force=options.force) as folder, bar("Exporting") as progress:
        folder.register(paths)
        named = _write(contents, folder, len(paths), progress)
        uploads = {f"uploads/{inside}": file for inside, file in upload_sources(site, named).items()}
        wanted = {f"uploads/{inside}": images[inside] for inside in named if inside in images}
        renderer = CustomFormatRenderer(site)
        rendered = _render_images(renderer, wanted, bar)
        folder.register([*uploads, *rendered])
        folder.remove_obsolete([*paths, *uploads, *rendered])
        _copy(folder, uploads, file_opener(site))
        for path, image in rendered.items():
            with renderer.open(image) as source:
                folder.copy(path, image.request, source)
        counts = folder.finish()
    documents, unreadable_types = _count_documents(contents), _unreadable_types(contents)
    files, failed_images = len(uploads) + len(rendered), len(wanted) - len(rendered)
    return ExportResult(
        documents,
        files,
        unscaled,
        failed_images,
        unreadable_types,
        counts,
        redirects.unsupported_count,
        redirects.invalid_alias_count,
    )


def _write(contents: SiteExport, folder: Folder, count: int, progress: Progress) -> set[str]:
    named = {media_key(file.path) or "" for file in contents.media}
    for done, response in enumerate(contents.responses(), 1):
        folder.write_response(response)
        if b"/uploads/" in response.body:
            named.update(possible_upload_paths(response.body))
        if done % 100 == 0 or done == count:
            progress(done, count)
    return named


def _render_images(
    renderer: CustomFormatRenderer, images: Mapping[str, CustomFormatImage], bar: Bar
) -> Mapping[str, CustomFormatImage]:
    with bar("Transforming images") as progress:
        rendered = renderer.render(images.values(), progress)
    return {path: image for path, image in sorted(images.items()) if image in rendered}


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


def _unreadable_types(contents: SiteExport) -> tuple[str, ...]:
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
    if access.drafts and not any(access.status_params(type_) for type_ in state.schema.content_types):
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
