"""GET /uploads/…: the files of content/uploads/, as they are on disk."""

from flask import Blueprint, Response, request, send_file

from server.api.request import state_of
from server.documents.layout import UPLOADS
from server.errors import NotFoundError
from server.site.site import Site
from server.storage.media import mime_type


def blueprint(site: Site) -> Blueprint:
    """The route of media files: only what the index knows as one is served."""
    bp = Blueprint("uploads", __name__, url_prefix="/uploads")

    @bp.get("/<path:path>")
    def upload(path: str) -> Response:
        media = state_of(request).snapshot.media
        file = site.root / UPLOADS / path if path in media else site.image_cache.file_of(path, media)
        if file is None:
            raise NotFoundError()
        try:
            found = send_file(file, mimetype=mime_type(path), conditional=True, max_age=3600)
        except OSError as error:
            raise NotFoundError() from error
        # An SVG or HTML file is shown, but can't run script on the site's origin.
        found.headers["Content-Security-Policy"] = "default-src 'self'; script-src 'none'; sandbox"
        return found

    return bp
