"""What is an e-mail address. Loaded when one is first checked, since its library takes a while to load."""

from email_validator import EmailNotValidError, validate_email


def is_valid(text: str) -> bool:
    """Whether text has the form of an e-mail address; nobody is asked whether it exists."""
    try:
        validate_email(text, check_deliverability=False, globally_deliverable=False)
    except EmailNotValidError:
        return False
    return True
