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
