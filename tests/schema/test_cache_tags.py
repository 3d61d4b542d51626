"""Cache tags for content types and documents."""

from hypothesis import given
from hypothesis import strategies as st

from server.schema.model import MAX_HEADER_BYTES, UPLOAD, document_tag, header_value, type_tag

ARTICLE = "api::article.article"


def test_tags_name_types_and_documents_as_the_api_does() -> None:
    assert type_tag(ARTICLE) == "article"
    assert document_tag(ARTICLE, "tide-mills") == "article:tide-mills"
    assert type_tag(UPLOAD) == "upload"
    assert document_tag(UPLOAD, "people--ida.png") == "upload:people--ida.png"


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_tag_is_one_word_of_a_header_and_of_one_document_alone(one: str, other: str) -> None:
    tag = document_tag(ARTICLE, one)
    assert tag.isascii()
    assert tag.isprintable()
    assert not set(tag) & set(' ,"')
    assert (tag == document_tag(ARTICLE, other)) == (one == other)


def test_the_header_has_each_tag_once_and_no_document_whose_type_is_there() -> None:
    tags = ["tag", "article:b", "author:ida", "tag:fog", "article:a", "article:a"]
    assert header_value(tags) == "_site, article:a, article:b, author:ida, tag"
    assert header_value([]) == "_site"


def test_above_4_kb_the_header_has_types_alone() -> None:
    tags = [document_tag(ARTICLE, f"{i:08}") for i in range(400)]
    assert header_value([*tags, "author:ida"]) == "_site, article, author"
    assert len(header_value(tags[:200])) <= MAX_HEADER_BYTES
    assert header_value(tags[:200]).count("article:") == 200
