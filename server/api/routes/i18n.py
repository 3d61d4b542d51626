"""GET /api/i18n/locales: the locales of the site, as a bare list."""

from flask import Blueprint, Response, request

from server.api.identities import Identities
from server.api.render import dumps
from server.api.request import answer, state_of
from server.documents.locales import describe
from server.site.site import Site


def blueprint(site: Site, identities: Identities) -> Blueprint:
    """The route of the list of locales."""
    bp = Blueprint("i18n", __name__, url_prefix="/api/i18n")

    @bp.get("/locales", strict_slashes=False)
    def locales() -> Response:
        identities.permit(request, "locale", "find")
        settings = state_of(request).settings
        return answer(dumps([describe(code, settings, site.started) for code in settings.locales]))

    return bp
