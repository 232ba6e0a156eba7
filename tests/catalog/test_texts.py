"""The text that perplexity is measured on is whole, plain, and says why it may be used."""

from core.catalog.texts import public_text


def test_the_text_says_what_it_is() -> None:
    found = public_text()
    assert (found.author, found.year) == ("Lewis Carroll", "1865")
    assert "1898" in found.reason
    assert found.source.startswith("https://")


def test_the_text_is_a_whole_chapter_of_plain_words() -> None:
    text = public_text().text
    assert text.startswith("Alice was beginning to get very tired of sitting by her sister on the bank")
    assert text.endswith("So she set to work, and very soon finished off the cake.")
    assert 2000 < len(text.split()) < 2300
    assert text.isascii()
    assert not any(mark in text for mark in ("#", "\t", "  ", "\n\n", "Gutenberg"))
    assert all(paragraph[0].isupper() or paragraph[0] == '"' for paragraph in text.splitlines())
