"""Where the lines of a text begin and end. All indexes count characters of the text."""


def newline_of(text: str) -> str:
    """How a text ends its lines, judged by the first one."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def line_start(text: str, at: int) -> int:
    """Where the line around an index begins."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Where the line around an index ends, before its line break."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return end - 1 if end > at and text[end - 1] == "\r" else end


def next_line(text: str, at: int) -> int:
    """Where the line after that around an index begins; the end of the text where there is none."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def comments_start(text: str, at: int, first: int = 0) -> int:
    """Where the comments right above the line around an index begin; that line itself where none are.

    Lines that begin before the index `first` are no comments, whatever they look like.
    """
    at = line_start(text, at)
    while at > first:
        above = line_start(text, at - 1)
        if above < first or not text[above:at].lstrip(" \t").startswith("#"):
            break
        at = above
    return at
