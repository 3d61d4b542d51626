"""The secrets that the matrix plants, by who may see them, and how they read in each of the twin sites."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum


class Group(Enum):
    """Secrets that the same identities may see."""

    NEVER = "never"  # a password, a token's name, site.yaml, .bifolio/, and outside of content/
    PRIVATE = "private"  # private attributes
    DRAFT = "draft"  # drafts of articles, also in past commits
    HIDDEN = "hidden"  # documents of a type that few may find, users, and their past
    PAST = "past"  # past commits and deleted documents of articles
    BRANCH = "branch"  # a branch that is not served
    NAME = "name"  # what a type is called that few may find, its attributes, and relations to it


# What the secrets of a group begin with: in the first site, in one with secrets of the same lengths, and in
# one with longer ones, where there are also more documents that hold them.
_WORDS: Mapping[Group, tuple[str, str, str]] = {
    Group.NEVER: ("zyxnever", "wuqnixie", "vojneverandagain"),
    Group.PRIVATE: ("zyxprivy", "wuqhushy", "vojprivilegedwords"),
    Group.DRAFT: ("zyxdraft", "wuqsketc", "vojdraughtsandplans"),
    Group.HIDDEN: ("zyxhidde", "wuqveile", "vojhiddenfromeverybody"),
    Group.PAST: ("zyxpaste", "wuqyoree", "vojpastandgoneforgood"),
    Group.BRANCH: ("zyxbranc", "wuqtwigg", "vojbranchesoftrees"),
    Group.NAME: ("zyxtermi", "wuqtitul", "vojwordsfornothing"),
}
BASE, SAME_LENGTH, LONGER = range(3)
WORDS = tuple(word for words in _WORDS.values() for word in words)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets of one site: those of some groups are of another kind than BASE."""

    changed: frozenset[Group] = frozenset()
    kind: int = BASE

    def text(self, group: Group, place: str) -> str:
        """Return the secret of a group in a place."""
        return f"{self.word(group)}{place}"

    def word(self, group: Group) -> str:
        """Return what the secrets of a group begin with here."""
        return _WORDS[group][self._kind_of(group)]

    def number(self, group: Group) -> int:
        """Return a secret number."""
        return (1711, 1722, 173333)[self._kind_of(group)]

    def more(self, group: Group) -> bool:
        """Return whether there are more documents with secrets of a group."""
        return self._kind_of(group) == LONGER

    def hidden_words(self, groups: frozenset[Group]) -> Iterator[str]:
        """Yield what the secrets of some groups begin with, in any site."""
        for group in groups:
            yield from _WORDS[group]

    def _kind_of(self, group: Group) -> int:
        return self.kind if group in self.changed else BASE


def probes(group: Group) -> tuple[str, ...]:
    """Return words that a guesser may send: those that begin secrets in the first site and in its twins."""
    return _WORDS[group]
