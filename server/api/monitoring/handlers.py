"""Handlers for /_health/ready and /metrics."""

import re
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

from flask import Response, request

from server.api.identities import Identities
from server.api.lazy import Lazy
from server.api.monitoring.condition import server_status
from server.api.monitoring.request_counts import MonitoredParts
from server.api.request import actor_of, answer, parameters, require_permission
from server.api.routes.handlers import Handlers
from server.errors import ApiError, ValidationError
from server.service.render import dumps
from server.site.site import Site
from server.storage.bucket.site_bucket import SiteBucket

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

if TYPE_CHECKING:
    from server.api.monitoring.metrics import Metrics


def bind(
    handles: Handlers, site: Site, identities: Identities, monitored: MonitoredParts, bucket: SiteBucket
) -> None:
    """Register the handlers."""
    look = partial(server_status, site, identities, monitored.recorder, bucket)

    def make() -> "Metrics":
        module = import_module("server.api.monitoring.metrics")  # a lazy import (docs/packages.py)
        return cast("Metrics", module.Metrics(site, monitored, look))

    metrics = Lazy(make)

    @handles("healthReady")
    def ready() -> Response:
        longest, found = _max_lag_s(), look()
        may = False
        if found.remote or found.push:
            # A caller who can't be identified gets the same response as the public.
            with suppress(ApiError):
                may = actor_of(request).may("metrics", "read")
        late = longest is not None and found.lag_s > longest
        return answer(dumps({"data": found.as_json(detailed=may)}), 503 if late else 200)

    @handles("metrics")
    def shown() -> Response:
        require_permission(request, "metrics", "read")
        return Response(metrics().text(), content_type=CONTENT_TYPE)


def _max_lag_s() -> int | None:
    given = parameters(request).get("lag")
    if given is None:
        return None
    if not isinstance(given, str) or not re.fullmatch(r"[0-9]{1,9}", given):
        raise ValidationError('"lag" must be a number of seconds, such as 60')
    return int(given)
