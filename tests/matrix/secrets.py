"""The secrets in the twin sites: which identities may see them, and their text in each twin."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum


class Group(Enum):
    """A group of secrets that the same identities may see."""

    NEVER = "never"  # a password, site.yaml, .bifolio/, and files outside content/
    PRIVATE = "private"  # private attributes
    DRAFT = "draft"  # drafts of articles, also in past commits
    HIDDEN = "hidden"  # documents with a content type that few may find, users, and the history of both
    PAST = "past"  # past commits and deleted documents of articles
    BRANCH = "branch"  # a branch that is not served
    TOKEN = "token"  # the name of an API token
    NAME = "name"  # the names of a content type that few may find, of its attributes, and of relations to it


# The words that the secrets of a group begin with: in the first twin, in a twin with secrets of the same
# length, and in a twin with longer secrets. The last twin also has more documents with secrets.
_WORDS: Mapping[Group, tuple[str, str, str]] = {
    Group.NEVER: ("zyxnever", "wuqnixie", "vojneverandagain"),
    Group.PRIVATE: ("zyxprivy", "wuqhushy", "vojprivilegedwords"),
    Group.DRAFT: ("zyxdraft", "wuqsketc", "vojdraughtsandplans"),
    Group.HIDDEN: ("zyxhidde", "wuqveile", "vojhiddenfromeverybody"),
    Group.PAST: ("zyxpaste", "wuqyoree", "vojpastandgoneforgood"),
    Group.BRANCH: ("zyxbranc", "wuqtwigg", "vojbranchesoftrees"),
    Group.TOKEN: ("zyxtoken", "wuqtally", "vojtokensandtallies"),
    Group.NAME: ("zyxtermi", "wuqtitul", "vojwordsfornothing"),
}
BASE, SAME_LENGTH, LONGER = range(3)
WORDS = tuple(word for words in _WORDS.values() for word in words)


@dataclass(frozen=True, slots=True)
class Secrets:
    """The secrets of one site. The groups in `changed` use secrets of the kind `kind`, all others those of
    the kind BASE.
    """

    changed: frozenset[Group] = frozenset()
    kind: int = BASE

    def text(self, group: Group, place: str) -> str:
        """Return a group's secret for a place in the site."""
        return f"{self.word(group)}{place}"

    def word(self, group: Group) -> str:
        """Return the word with which a group's secrets begin on this site."""
        return _WORDS[group][self._kind_of(group)]

    def number(self, group: Group) -> int:
        """Return a number that is secret."""
        return (1711, 1722, 173333)[self._kind_of(group)]

    def more(self, group: Group) -> bool:
        """Return whether this site has additional documents with the group's secrets."""
        return self._kind_of(group) == LONGER

    def hidden_words(self, groups: frozenset[Group]) -> Iterator[str]:
        """Yield the words with which the secrets of some groups begin, on any site."""
        for group in groups:
            yield from _WORDS[group]

    def _kind_of(self, group: Group) -> int:
        return self.kind if group in self.changed else BASE


def probes(group: Group) -> tuple[str, ...]:
    """Return words that an attacker might guess: those with which secrets begin, on the first site and its
    twins.
    """
    return _WORDS[group]
