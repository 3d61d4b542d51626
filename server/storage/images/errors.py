"""Errors of resizing or transforming images."""


class UnresizableError(Exception):
    """Raised if no variants of an image can be made.

    The image is damaged, or making them takes too much time or memory.
    """


class UntransformableError(Exception):
    """Raised if an image can't be transformed, and a retry would fail too.

    The message is a phrase without a subject, such as "can't be encoded as avif". `source_digest` is the
    SHA-256 hash of the image, or "" if it is unknown.
    """

    def __init__(self, reason: str, source_digest: str = "") -> None:
        super().__init__(reason)
        self.source_digest = source_digest


class SizeLimitError(ValueError):
    """Raised if an image is too large, or if the requested part is outside the image.

    The message gives the reason, such as "it has more than 100,000 pixels".
    """


class LostProcessError(Exception):
    """Raised if a decoder process exited or did not respond. The transformation may succeed in a retry."""
