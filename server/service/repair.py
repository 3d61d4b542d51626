"""Fixes of what a check has found, of documents and of the configuration."""

from collections.abc import Sequence

from server.service.read import Caller
from server.service.write import Outcome, Writes
from server.site.check.fixes import FixResult, KeyFix, Repair, apply_fixes, apply_key_fixes


def fix_documents(writes: Writes, caller: Caller, repair: Repair, message: str = "") -> Outcome[FixResult]:
    """Fix values of documents; those in files that were changed meanwhile are refused, the others made.

    Without a message, the commit says how many were fixed. Raises what `Writes.make` raises.
    """
    return writes.make(caller, apply_fixes, repair, message=message or _message_of)


def fix_keys(writes: Writes, caller: Caller, fixes: Sequence[KeyFix]) -> Outcome[None]:
    """Fix keys of site.yaml and schemas. Raises what `Writes.make` raises."""
    return writes.make(caller, apply_key_fixes, fixes, message=fix_message(len(fixes)))


def fix_message(count: int) -> str:
    """Return what the commit of some fixes says: `Fix 3 problems`."""
    return f"Fix {count:,} problem{'s' * (count != 1)}"


def _message_of(made: FixResult) -> str:
    return fix_message(len(made.fixes))
