"""Email delivery. If no mail server is configured, emails are written to the log instead."""

import logging
import os
import queue
import smtplib
import ssl
import threading
from collections.abc import Callable
from email.message import EmailMessage

from server.config.model import Settings

log = logging.getLogger("bifolio.mail")
PASSWORD_VARIABLE = "BIFOLIO_MAIL_PASSWORD"
TIMEOUT_S = 10
MAX_QUEUED_MAILS = 1000


class Outbox:
    """Queue of functions that send emails in the background."""

    # Responses do not wait for the queue, so that response times don't reveal whether an email was sent.

    def __init__(self) -> None:
        self._waiting: queue.Queue[Callable[[], object]] = queue.Queue(MAX_QUEUED_MAILS)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def put(self, job: Callable[[], object]) -> None:
        """Queue a function that sends an email. If the queue is full, log an error and discard the email."""
        with self._lock:
            # The thread is started at first use, because threads do not survive a fork.
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="outbox", daemon=True)
                self._thread.start()
        try:
            self._waiting.put_nowait(job)
        except queue.Full:
            log.error("an email was discarded, because %d emails are already queued", MAX_QUEUED_MAILS)

    def _work(self) -> None:
        while True:
            job = self._waiting.get()
            try:
                job()
            except Exception:
                log.exception("an email can't be created")


def send(settings: Settings, to: str, subject: str, text: str) -> bool:
    """Send an email. If no mail server is configured, write the email to the log instead.

    Return False if the email can't be sent.
    """
    message = EmailMessage()
    message["From"], message["To"] = settings.mail.sender, to
    message["Subject"] = " ".join(subject.split())
    message.set_content(text)
    if not settings.mail.host:
        log.warning("mail.host is not set in site.yaml, so this email to %s was not sent:\n%s", to, text)
        return True
    try:
        with smtplib.SMTP(settings.mail.host, settings.mail.port, timeout=TIMEOUT_S) as server:
            if settings.mail.tls:
                server.starttls(context=ssl.create_default_context())
            if settings.mail.user:
                server.login(settings.mail.user, os.environ.get(PASSWORD_VARIABLE, ""))
            server.send_message(message)
    except (OSError, smtplib.SMTPException, ValueError) as error:
        log.error("the email to %s can't be sent: %s", to, error)
        return False
    return True
