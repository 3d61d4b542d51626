"""Delivers webhooks in the background, in the process that leads."""

import threading

from server.api.webhooks.body import body_of
from server.events.model import Event
from server.events.webhooks.delivering import Deliverer
from server.site.site import Site


def deliver(site: Site, stop: threading.Event) -> None:
    """Deliver the webhooks of a site until `stop` is set."""

    def render(event: Event, drafts: bool) -> bytes:
        if event.document_id:
            site.record()  # A change is recorded and then shown, under the lock that this takes.
        return body_of(site.state, event, drafts=drafts)

    Deliverer(site.root, lambda: site.state.settings, render).run(stop)
