"""The operations of the media library."""

from collections.abc import Iterator

from server.api.openapi.operations import ALWAYS, JSON, WRITE, answer, closed, operation
from server.api.openapi.parameters import name_in_path
from server.api.openapi.services.caller import FILE, TEXT, Caller, methods, part_of, shared_of
from server.api.openapi.types import ref
from server.api.openapi.values import JsonSchema
from server.write.uploads.file_info import INFO

MEDIA = "Media"


def media_paths(caller: Caller, populated: tuple[str, ...]) -> Iterator[tuple[str, JsonSchema]]:
    """Every path of media; `populated` names the parameter that shows what files are related to."""
    one, several = ref(FILE), {"type": "array", "items": ref(FILE)}
    number = name_in_path("id", "The number or documentId of a file.")
    branch = [ref("branch", "parameters")] * caller.branches
    asking = shared_of(FILE, "fields", "filters", "sort", *populated)
    found = caller.operation(
        "upload.find", MEDIA, "findFiles", "The files of the media library, all of them",
        {200: answer("The files.", several)}, parameters=[*asking, *part_of("files")],
    )  # fmt: skip
    meta = closed({"pagination": ref("Pagination")})
    page = caller.operation(
        "upload.find", MEDIA, "findFilesPage", "A page of the files of the media library",
        {200: answer("The files.", closed({"data": several, "meta": meta}))},
        parameters=[*asking, ref("pagination", "parameters")],
    )  # fmt: skip
    sent = caller.operation(
        "upload.upload", MEDIA, "uploadFiles",
        "Upload files; with `id`, say something else of a file, or replace it",
        {200: answer("The file that was changed.", one), 201: answer("The new files.", several)},
        parameters=[_upload_id(), *branch], body=_UPLOAD_BODY, errors=(*WRITE, 404), commits=caller.commits,
    )  # fmt: skip
    yield "/api/upload", methods(post=sent)
    yield "/api/upload/files", methods(get=found)
    yield "/api/upload/files/page", methods(get=page)
    shown = caller.operation(
        "upload.findOne", MEDIA, "findOneFile", "One file",
        {200: answer("The file.", one)}, parameters=[number, *shared_of(FILE, *populated)],
        errors=(*ALWAYS, 404),
    )  # fmt: skip
    gone = caller.operation(
        "upload.destroy", MEDIA, "deleteFile", "Delete a file",
        {200: answer("The file that is gone.", one)},
        parameters=[number, *branch], errors=(*WRITE, 404), commits=caller.commits,
    )  # fmt: skip
    yield "/api/upload/files/{id}", methods(get=shown, delete=gone)
    yield "/uploads/{path}", methods(get=_download(limited=caller.limited))


def _download(*, limited: bool) -> JsonSchema:
    content: JsonSchema = {"*/*": {"schema": {}}}
    address = {"schema": {"type": "string"}, "description": "Its address there.", "required": True}
    return operation(
        MEDIA, "download", "The content of a file",
        {
            200: {"description": "The bytes of the file.", "content": content},
            206: {"description": "A part of it, as `Range` asks for.", "content": content},
            302: {"description": "The file is in a bucket.", "headers": {"Location": address}},
        },
        parameters=[name_in_path("path", "The path in a file's `url`; it may have slashes.")],
        errors=(404, 416, 500, 502, 503), public=True, limited=limited,
    )  # fmt: skip


def _upload_id() -> JsonSchema:
    return {
        "name": "id",
        "in": "query",
        "description": "The number or documentId of the file to change.",
        "schema": {"type": "string"},
    }


_UPLOAD_BODY: JsonSchema = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {
                    "files": {
                        "type": "array",
                        "items": {
                            "type": "string",
                            "format": "binary",
                            "contentMediaType": "application/octet-stream",
                        },
                    },
                    "fileInfo": {
                        "type": "string",
                        "contentMediaType": JSON,
                        "description": f"JSON: {', '.join(INFO)}; or a list with one for each file.",
                    },
                    "ref": {
                        **TEXT,
                        "description": "The uid of a content type or component that gets the files.",
                    },
                    "refId": {**TEXT, "description": "The id of it, or the documentId."},
                    "field": {**TEXT, "description": "Its media attribute."},
                },
            }
        }
    },
}
