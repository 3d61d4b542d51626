"""Syntax of e-mail addresses. Imported on first use, because its library is slow to load."""

from email_validator import EmailNotValidError, validate_email


def is_valid(text: str) -> bool:
    """Whether text has the form of an e-mail address; nobody is asked whether it exists.

    Its domain has a dot and ends in letters: nobody else can send mail to `ann@localhost`.
    """
    try:
        found = validate_email(text, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError:
        return False
    _, dot, last = found.domain.rpartition(".")
    return bool(dot) and last.isalpha()
