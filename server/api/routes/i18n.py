"""GET /api/i18n/locales: the locales of the site, as a bare list."""

import os

from flask import Blueprint, Response, request

from server.api.identities import Identities
from server.api.render import dumps
from server.api.request import answer, state_of
from server.config.model import FILE
from server.documents.locales import describe
from server.site.site import Site


def blueprint(site: Site, identities: Identities) -> Blueprint:
    """The route of the list of locales."""
    bp = Blueprint("i18n", __name__, url_prefix="/api/i18n")

    @bp.get("/locales", strict_slashes=False)
    def locales() -> Response:
        identities.permit(request, "locale", "find")
        settings = state_of(request).settings
        timestamps = _timestamps(site)
        return answer(dumps([describe(code, settings, timestamps) for code in settings.locales]))

    return bp


def _timestamps(site: Site) -> tuple[str, str]:
    """When the settings were made and changed; for a site that has none, when its first files were committed,
    and for one without commits, when it was loaded.
    """
    committed = site.git.committed
    try:
        changed = os.stat(site.root / FILE).st_mtime
    except OSError:
        changed = min((first for first, _ in committed.times.values()), default=site.started)
    return committed.timestamps(FILE, changed)
