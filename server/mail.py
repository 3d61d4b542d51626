"""Sends mail: to the SMTP server that site.yaml names, or, where it names none, to the log."""

import logging
import os
import smtplib
from email.message import EmailMessage

from server.settings import Settings

log = logging.getLogger("quire.mail")
PASSWORD = "QUIRE_MAIL_PASSWORD"
TIMEOUT_S = 10


def send(settings: Settings, to: str, subject: str, text: str) -> bool:
    """Send a mail; False (and a line in the log) where it could not be sent."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = settings.mail_from, to, subject
    message.set_content(text)
    if not settings.mail_host:
        log.warning("no mail server is set (mail.host in site.yaml); the mail to %s says:\n%s", to, text)
        return True
    try:
        with smtplib.SMTP(settings.mail_host, settings.mail_port, timeout=TIMEOUT_S) as server:
            if settings.mail_tls:
                server.starttls()
            if settings.mail_user:
                server.login(settings.mail_user, os.environ.get(PASSWORD, ""))
            server.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        log.error("the mail to %s could not be sent: %s", to, error)
        return False
    return True
