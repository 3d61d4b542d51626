"""Syntax check for e-mail addresses. Imported at first use, because its library is slow to import."""

from email_validator import EmailNotValidError, validate_email


def is_valid(text: str) -> bool:
    """Whether a text has the form of an e-mail address. Whether the address exists is not checked.

    The domain must contain a dot and end with letters, since `ann@localhost` is unreachable from other
    machines.
    """
    try:
        found = validate_email(text, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError:
        return False
    _, dot, last = found.domain.rpartition(".")
    return bool(dot) and last.isalpha()
