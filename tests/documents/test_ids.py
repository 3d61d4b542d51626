"""Tests of the document ids in file names and files, and of new ids."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.documents.encode import Reading, read_document_id
from server.documents.ids import id_of_name, id_of_reference, new_document_id
from server.formats.tree import Plain, Tree

NAMES = st.lists(st.text("abc-é", min_size=1, max_size=4), min_size=1, max_size=3).map("/".join)


@given(NAMES, st.sampled_from(["{}", "/{}", "{}/", " {} ", " /{}/ "]))
def test_a_path_to_a_document_means_the_id_of_its_name(name: str, form: str) -> None:
    assert id_of_reference(form.format(name)) == id_of_name(name)
    assert id_of_reference(id_of_name(name)) == id_of_name(name)
    assert "/" not in id_of_name(name)


@pytest.mark.parametrize("written", ["abc", Plain("abc"), "~", "null", "a--b", Plain("12")])
def test_a_file_may_say_its_id(written: Tree) -> None:
    reading = Reading({})
    assert read_document_id({"documentId": written}, "other", reading) == str(written)
    assert reading.mismatches == []


@pytest.mark.parametrize("written", [None, Plain(""), Plain("~")])
def test_a_file_may_say_no_id(written: Tree) -> None:
    reading = Reading({})
    assert read_document_id({"documentId": written}, "other", reading) == "other"
    assert read_document_id({}, "other", reading) == "other"
    assert reading.mismatches == []


@pytest.mark.parametrize("written", ["", "a/b", 12, True, ["a"], {"a": "b"}])
def test_what_can_be_no_id_is_told(written: Tree) -> None:
    reading = Reading({})
    assert read_document_id({"documentId": written}, "other", reading) == "other"
    assert [wrong.path for wrong in reading.mismatches] == [("documentId",)]


def test_new_ids_are_unlike_and_sort_by_the_time_of_their_making() -> None:
    made = [new_document_id() for _ in range(2000)]
    assert made == sorted(set(made))
    assert all(re.fullmatch("[a-z][a-z0-9]{23}", each) for each in made)
