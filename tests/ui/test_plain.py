"""Foreign text cannot become formatting, a link or a picture."""

from hypothesis import given
from hypothesis import strategies as st

from core.ui.plain import plain


@given(st.text())
def test_nothing_is_lost_and_every_mark_is_escaped(text: str) -> None:
    shown = plain(text)
    assert shown.replace("\\", "") == text.replace("\\", "")
    for mark in "`*_[]<>()!$&":
        assert shown.count(mark) == shown.count(f"\\{mark}")
