"""Transfer of media files between disk and bucket, in batches."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from posixpath import splitext
from typing import TYPE_CHECKING

from server.documents.document import Document
from server.errors import ConflictError, MissingObjectError
from server.formats.edits import REMOVE
from server.formats.tree import Tree
from server.schema.model import PLACEHOLDER
from server.service.read import Caller
from server.service.write import Outcome, Writes
from server.site.site import Site
from server.storage.bucket.keeping import MediaUploader
from server.storage.bucket.stored import DESCRIPTION_KEY, StoredFile, StoredObject, object_of
from server.storage.document_text import change_text, new_text
from server.storage.files import Signature, signature
from server.storage.images.kinds import ImageSize
from server.storage.images.variants import should_have_variants
from server.storage.media import SIDECAR_SUFFIX
from server.storage.read import parse
from server.storage.temporary import temporary_file
from server.write.context import Context, syntax_errors_as_conflicts
from server.write.write_timestamps import known_timestamps

if TYPE_CHECKING:
    from server.storage.bucket.bucket import Bucket

BATCH_FILES = 20  # number of files that one write moves
# called with the number of files processed so far and the total number
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class TransferResult:
    """The result of a transfer: the number and total size of the files, and the id of the last commit.

    `unmoved` contains the path of each file that was not transferred, and the reason.
    """

    file_count: int
    byte_count: int
    unmoved: tuple[tuple[str, str], ...] = ()
    commit: str = ""


def _sum(parts: Sequence[TransferResult]) -> TransferResult:
    return TransferResult(
        sum(part.file_count for part in parts),
        sum(part.byte_count for part in parts),
        tuple(sorted(file for part in parts for file in part.unmoved)),
        next((part.commit for part in reversed(parts) if part.commit), ""),
    )


def _part(outcome: Outcome[TransferResult]) -> TransferResult:
    return replace(outcome.result, commit=outcome.commit)


def _message(verb: str, direction: str, result: TransferResult) -> str:
    count = result.file_count
    return f"{verb} {count:,} media file{'s' * (count != 1)} {direction} the bucket"


def media_of(site: Site) -> list[Document]:
    return sorted(site.state.snapshot.media.values(), key=lambda document: document.path)


def is_on_disk(site: Site, document: Document) -> bool:
    return os.path.lexists(site.root / document.path)


@contextmanager
def downloaded(site: Site, bucket: "Bucket", object_: StoredObject) -> Iterator[Path]:
    """Download an object into a temporary file, and yield the file's path. Raises BucketError or OSError."""
    with temporary_file(site.root) as file:
        bucket.fetch(object_, file)
        file.flush()
        yield Path(file.name)


# --- pulling --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _DownloadedFile:
    document: Document
    source: Path
    size: int


def pull(writes: Writes, caller: Caller, bucket: "Bucket", progress: Progress) -> TransferResult:
    """Move all media files from the bucket to content/uploads/.

    Raises BucketError, or any error of `Writes.save`.
    """
    site = writes.site
    pending = [
        (document, object_)
        for document in media_of(site)
        if (object_ := object_of(document.get("provider_metadata"))) and not is_on_disk(site, document)
    ]
    parts, message = list[TransferResult](), partial(_message, "Move", "from")
    for start in range(0, len(pending), BATCH_FILES):
        batch = list[_DownloadedFile]()
        with ExitStack() as stack:
            for done, (document, object_) in enumerate(pending[start : start + BATCH_FILES], start):
                progress(done, len(pending))
                try:
                    source = stack.enter_context(downloaded(site, bucket, object_))
                except MissingObjectError as error:
                    parts.append(TransferResult(0, 0, ((document.path, error.message),)))
                    continue
                batch.append(_DownloadedFile(document, source, object_.size))
            if batch:
                parts.append(_part(writes.save(caller, _save_files, batch, message=message)))
    progress(len(pending), len(pending))
    return _sum(parts)


def _save_files(batch: Sequence[_DownloadedFile], context: Context) -> TransferResult:
    sizes, unmoved = list[int](), list[tuple[str, str]]()
    for fetched_file in batch:
        path, sidecar = fetched_file.document.path, fetched_file.document.path + SIDECAR_SUFFIX
        if context.changeset.exists(path):
            unmoved.append((path, "another program created the file during the transfer"))
            continue
        if not context.changeset.exists(sidecar):
            unmoved.append((path, "the file was deleted during the transfer"))
            continue
        with syntax_errors_as_conflicts(sidecar):
            text = change_text(sidecar, context.changeset.text(sidecar), None, {DESCRIPTION_KEY: REMOVE})
        context.changeset.put(sidecar, text)
        context.changeset.put_file(path, fetched_file.source)
        sizes.append(fetched_file.size)
    return TransferResult(len(sizes), sum(sizes), tuple(unmoved))


# --- pushing --------------------------------------------------------------------------------------

MAX_ATTEMPTS = 3  # maximum number of attempts to upload a file that keeps changing during the upload


@dataclass(frozen=True, slots=True)
class _UploadedFile:
    document: Document
    stored: StoredFile
    found: Signature | None


@dataclass(frozen=True, slots=True)
class _UploadedBatch:
    files: Sequence[_UploadedFile]
    keep: bool


def push(
    writes: Writes, caller: Caller, bucket: "Bucket", progress: Progress, *, keep: bool = False
) -> TransferResult:
    """Upload all media files to the bucket, and delete the local files unless `keep` is set.

    Raises BucketError, or any error of `Writes.save`.
    """
    site = writes.site
    placeholders = site.state.settings.media.placeholders
    uploader = MediaUploader(bucket, site.image_cache.folder, placeholders=placeholders)
    pending = [
        sent_file
        for sent_file in media_of(site)
        if is_on_disk(site, sent_file) or _lacks_variants(sent_file, placeholders)
    ]
    parts, message = list[TransferResult](), partial(_message, "Copy" if keep else "Move", "to")
    for start in range(0, len(pending), BATCH_FILES):
        sent = list[_UploadedFile]()
        for done, document in enumerate(pending[start : start + BATCH_FILES], start):
            progress(done, len(pending))
            try:
                sent_file = _upload_file(site, bucket, uploader, document, keep=keep)
            except (OSError, ConflictError, MissingObjectError) as error:
                parts.append(TransferResult(0, 0, ((document.path, str(error)),)))
                continue
            if sent_file.found or sent_file.stored.formats:
                sent.append(sent_file)
        if sent:
            uploaded = _UploadedBatch(sent, keep)
            parts.append(_part(writes.save(caller, _record_in_bucket, uploaded, message=message)))
    progress(len(pending), len(pending))
    return _sum(parts)


def _lacks_variants(document: Document, placeholders: bool) -> bool:
    width, height = document.get("width"), document.get("height")
    lacks = not document.get("formats") or (placeholders and not document.get(PLACEHOLDER))
    if not lacks or not (width and height) or not object_of(document.get("provider_metadata")):
        return False
    return should_have_variants(ImageSize(width, height), splitext(document.path)[1])


def _upload_file(
    site: Site, bucket: "Bucket", uploader: MediaUploader, document: Document, *, keep: bool
) -> _UploadedFile:
    path, suffix = site.root / document.path, splitext(document.path)[1]
    if not is_on_disk(site, document):
        object_ = object_of(document.get("provider_metadata"))
        assert object_
        with downloaded(site, bucket, object_) as copy:
            return _UploadedFile(document, uploader.upload(copy, suffix), None)
    if path.is_symlink():
        raise ConflictError("is a symbolic link, so it can't be moved")
    for _ in range(MAX_ATTEMPTS):
        before_upload = signature(os.stat(path))
        stored = uploader.upload(path, suffix)
        if not keep:
            _verify_upload(bucket, stored)
        if signature(os.stat(path)) == before_upload:
            return _UploadedFile(document, stored, before_upload)
    raise ConflictError("changed repeatedly during the upload")


def _verify_upload(bucket: "Bucket", stored: StoredFile) -> None:
    with Path(os.devnull).open("wb") as null_device:
        for object_ in stored.objects:
            bucket.fetch(object_, null_device)


def _record_in_bucket(batch: _UploadedBatch, context: Context) -> TransferResult:
    sizes, unmoved = list[int](), list[tuple[str, str]]()
    for sent_file in batch.files:
        path = sent_file.document.path
        if sent_file.found and _signature(context.changeset.root / path) != sent_file.found:
            unmoved.append((path, "the file changed after the upload; run the command again"))
            continue
        _describe_file(context, sent_file)
        if sent_file.found and not batch.keep:
            context.changeset.delete(path)
        sizes.append(sent_file.stored.object.size)
    return TransferResult(len(sizes), sum(sizes), tuple(unmoved))


def _signature(path: Path) -> Signature | None:
    try:
        return signature(os.stat(path))
    except FileNotFoundError:
        return None


def _describe_file(context: Context, sent_file: _UploadedFile) -> None:
    # Missing timestamps are added too, so that responses don't change when the file on disk is deleted.
    path, document = sent_file.document.path + SIDECAR_SUFFIX, sent_file.document
    trees: dict[str, Tree] = {
        DESCRIPTION_KEY: sent_file.stored.as_tree(),
        **known_timestamps(document.created_at, document.updated_at),
    }
    if not context.changeset.exists(path):
        context.changeset.put(path, new_text(path, None, trees))
        return
    with syntax_errors_as_conflicts(path):
        text = context.changeset.text(path)
        existing = parse(path, text, None)
        changes = {key: tree for key, tree in trees.items() if key == DESCRIPTION_KEY or key not in existing}
        context.changeset.put(path, change_text(path, text, None, changes))
