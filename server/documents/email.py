"""Syntax check for email addresses.

`email_validator` is slow to import, so this module is imported only when it is needed.
"""

from email_validator import EmailNotValidError, validate_email


def is_valid(text: str) -> bool:
    # The domain must contain a dot, because other machines can't send email to `ann@localhost`.
    try:
        found = validate_email(text, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError:
        return False
    _, dot, last = found.domain.rpartition(".")
    return bool(dot) and last.isalpha()
