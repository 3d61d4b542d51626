"""Operations on the media library and its files (docs/media.md)."""

from server.api.operations.json_schema import (
    JSON,
    NUMBER,
    READ_ONE,
    STATUS,
    TEXT,
    TEXT_OR_NULL,
    WRITE,
    JsonSchema,
    body_of,
    in_path,
    in_query,
    list_of,
    object_of,
    parameter_refs,
    ref,
    response_doc,
)
from server.api.operations.operation import Area, Docs, Operation, Tag
from server.api.operations.people import paging_parameters
from server.api.operations.permission import anyone, may
from server.config.transformation import DESCRIPTIONS
from server.write.uploads.file_info import INFO_READERS, NEW_FILE_READERS

MEDIA = Tag("Media", "Files, their descriptions and their content.")
FILE = "UploadFile"
_FILE, _FILES = ref(FILE), list_of(ref(FILE))
_PAGE = object_of({"data": _FILES, "meta": object_of({"pagination": ref("Pagination")})})
_KEY = in_path("id", "The id or documentId of a file.")
_QUERIED = parameter_refs(f"{FILE}.fields", f"{FILE}.filters", f"{FILE}.sort", f"{FILE}.populate")
_LIBRARY = [
    in_query(
        "folder", TEXT, "Only the files directly in this folder of `content/uploads`; empty for the top."
    ),
    in_query("unused", {"type": "boolean"}, "Only the files that no document uses, or only the others."),
]
_FOLDERS = object_of({"data": list_of(object_of({"path": TEXT, "files": NUMBER}))})
_USE = {
    "type": TEXT, "documentId": TEXT, "locale": TEXT, "status": STATUS, "title": TEXT_OR_NULL,
    "attributes": list_of(TEXT),
}  # fmt: skip
_USAGE = object_of(
    {
        "data": list_of(object_of(_USE)),
        "meta": object_of(
            {
                "total": {**NUMBER, "description": "Number of documents that the caller may see."},
                "hidden": {
                    "type": ["boolean", "null"],
                    "description": "Whether other documents use it, too; null without `upload.destroy`.",
                },
            }
        ),
    }
)
_MOVE: JsonSchema = {
    "type": "object",
    "properties": {
        "folder": {**TEXT, "description": "The new folder in `content/uploads`; empty for the top."},
        "fileName": {
            **TEXT,
            "minLength": 1,
            "pattern": "^[^/]+$",
            "description": "The new name of the file. The type must stay the same.",
        },
    },
    "minProperties": 1,
}
_LINK = object_of({"path": TEXT, "line": NUMBER, "old": TEXT, "new": TEXT})
_MOVED = object_of(
    {
        "data": _FILE,
        "meta": object_of(
            {
                "documents": {**NUMBER, "description": "Number of changed files of documents."},
                "links": {**list_of(_LINK), "description": "Links in Markdown texts that were not changed."},
            }
        ),
    }
)
_BINARY = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
_FORM: JsonSchema = {
    "type": "object",
    "properties": {
        "files": list_of(_BINARY),
        "fileInfo": {
            "type": "string",
            "contentMediaType": JSON,
            "description": f"JSON object of {', '.join(INFO_READERS)} and, for a new file, "
            f"{', '.join(sorted({*NEW_FILE_READERS} - {*INFO_READERS}))}; or a list, one for each file.",
        },
        "previous": {
            "type": "string",
            "contentMediaType": JSON,
            "description": "With `id`: former values of fileInfo. If one has changed, the response is 412.",
        },
        "ref": {**TEXT, "description": "The uid of a content type or component to attach the files to."},
        "refId": {**TEXT, "description": "The id or documentId of the document or component."},
        "field": {**TEXT, "description": "The name of the media attribute."},
    },
}
_BYTES: JsonSchema = {"*/*": {"schema": {}}}
_LOCATION = {
    "schema": TEXT,
    "description": "URL of the file in the bucket, or of the image in an allowed width.",
    "required": True,
}
_TRANSFORMATION = [
    in_query(name, {"type": "string"}, f"Transforms the image: {description}.")
    for name, description in DESCRIPTIONS.items()
]

UPLOAD = Area(
    "media",
    parts=("api/upload",),
    tag=MEDIA,
    takes_at=True,
    varies_by_commit=True,
    operations=(
        Operation(
            "uploadFiles", "POST", "/api/upload", may("upload", "upload"),
            Docs(
                "Upload files; with `id`, change a file's description or replace the file",
                {200: response_doc("The changed file.", _FILE), 201: response_doc("The new files.", _FILES)},
                [in_query("id", TEXT, "The id or documentId of the file to change.")],
                {"required": True, "content": {"multipart/form-data": {"schema": _FORM}}},
                (*WRITE, 404, 412),
            ),
            max_body=None, waits=True, branch=True, commits="maybe",
        ),
        Operation(
            "findFiles", "GET", "/api/upload/files", may("upload", "find"),
            Docs(
                "List all files of the media library",
                {200: response_doc("The files.", _FILES)},
                [*_QUERIED, *paging_parameters("files")],
            ),
        ),
        Operation(
            "findFilesPage", "GET", "/api/upload/files/page", may("upload", "find"),
            Docs(
                "List files of the media library in pages",
                {200: response_doc("The files.", _PAGE)},
                [*_QUERIED, *parameter_refs("pagination"), *_LIBRARY],
            ),
        ),
        Operation(
            "findFolders", "GET", "/api/upload/folders", may("upload", "find"),
            Docs("List the folders of the media library", {200: response_doc("The folders.", _FOLDERS)}),
        ),
        Operation(
            "findFileUsage", "GET", "/api/upload/files/{id:file}/usage", may("upload", "findOne"),
            Docs(
                "List the documents that use a file",
                {200: response_doc("The documents that the caller may see.", _USAGE)},
                [_KEY],
                errors=READ_ONE,
            ),
        ),
        Operation(
            "findOneFile", "GET", "/api/upload/files/{id:file}", may("upload", "findOne"),
            Docs(
                "Get a file",
                {200: response_doc("The file.", _FILE)},
                [_KEY, *parameter_refs(f"{FILE}.populate")],
                errors=READ_ONE,
            ),
        ),
        Operation(
            "deleteFile", "DELETE", "/api/upload/files/{id:file}", may("upload", "destroy"),
            Docs(
                "Delete a file", {200: response_doc("The deleted file.", _FILE)}, [_KEY], errors=(*WRITE, 404)
            ),
            branch=True, commits="maybe",
        ),
        Operation(
            "moveFile", "POST", "/api/upload/files/{id:file}/move", may("upload", "upload", "destroy"),
            Docs(
                "Move or rename a file, and update the documents that use it",
                {200: response_doc("The moved file.", _MOVED)},
                [_KEY, *parameter_refs("prefer")],
                body_of(_MOVE), (*WRITE, 404),
            ),
            dry_run="source", commits="maybe",
        ),
    ),
)  # fmt: skip

FILES = Area(
    "files",
    parts=("uploads",),
    tag=MEDIA,
    takes_at=True,
    varies_by_commit=True,
    operations=(
        Operation(
            "download", "GET", "/uploads/{path:path}", anyone,
            Docs(
                "Download a file",
                {
                    200: {"description": "The bytes of the file.", "content": _BYTES},
                    206: {"description": "The byte range that `Range` requests.", "content": _BYTES},
                    302: {
                        "description": "The file is in a bucket, or the width is not allowed.",
                        "headers": {"Location": _LOCATION},
                    },
                },
                [
                    in_path("path", "The path in a file's `url`; may contain slashes."),
                    in_query("v", TEXT, "The hash of the file. If it is current, the response is immutable."),
                    *_TRANSFORMATION,
                ],
                errors=(400, 404, 416, 429, 500, 502, 503, 507),
            ),
            slash=False,
        ),
    ),
)  # fmt: skip
