"""The pictures of page 7: who reads what, who holds copies, and bars to scale."""

import re

import pytest

from core.lesson.quantities.head_sharing import SharedCache
from core.ui.figures.cache_by_sharing import cache_by_sharing
from core.ui.figures.head_wiring import Wiring, head_wiring
from core.ui.figures.mark_scale import Marks
from tests.ui.drawn import drawn_inside

MARKS = Marks(low=1, high=10_000, unit="KiB", said=100.0, true=512.0, now=512.0)
CACHES = [SharedCache("MHA", 524_288, 65_536, 8), SharedCache("MLA", 36_864, 36_864, 8)]


def wiring(queries: int = 32, kept: int | None = 8, chips: int = 8) -> Wiring:
    return Wiring(query_heads=queries, kv_heads=kept, latent=512, rotary_key=64, chips=chips)


@pytest.mark.parametrize("chips", [1, 2, 8, 32])
@pytest.mark.parametrize(
    ("queries", "kept"), [(1, 1), (9, 3), (28, 4), (32, 8), (128, 128), (128, None), (40, None)]
)
def test_every_wiring_is_drawn_inside_the_picture(queries: int, kept: int | None, chips: int) -> None:
    markup = drawn_inside(head_wiring(wiring(queries, kept, chips), "A layer"))
    shown = min(queries, -(-queries // chips) * min(chips, 8))
    assert markup.count("query head ") == shown


def test_eight_kv_heads_on_eight_chips_have_no_copies() -> None:
    picture = head_wiring(wiring(), "A layer")
    markup = picture.drawing.markup()
    assert markup.count("kept here") == 8
    assert "a copy" not in markup
    assert "keep nothing twice" in picture.alt
    assert [row[2] for row in picture.rows] == [f"KV head {head}" for head in range(1, 9)]


def test_one_kv_head_or_a_latent_is_copied_to_every_chip() -> None:
    for kept in (1, None):
        picture = head_wiring(wiring(kept=kept), "A layer")
        markup = picture.drawing.markup()
        assert markup.count("kept here") == 1
        assert markup.count("a copy") == 7
        assert "each of them 8 times" in picture.alt
        assert sum(int(str(row[3])) for row in picture.rows) == 7


def test_neighbouring_query_heads_read_one_kv_head() -> None:
    shared = wiring(32, 8, 1)
    assert [shared.read_by(query) for query in range(8)] == [0, 0, 0, 0, 1, 1, 1, 1]
    assert shared.read_by(31) == 7
    assert wiring(32, 32, 1).read_by(31) == 31


def test_more_chips_than_are_drawn_are_told() -> None:
    assert "8 of 32 chips" in head_wiring(wiring(chips=32), "A layer").drawing.markup()


def test_bars_are_to_scale_and_a_latents_is_full() -> None:
    picture = cache_by_sharing(CACHES, MARKS)
    markup = drawn_inside(picture)
    pale = [float(width) for width in re.findall(r'width="([\d.]+)"[^>]*class="band fill-kv"', markup)]
    full = [float(width) for width in re.findall(r'width="([\d.]+)"[^>]*class="fill-kv"', markup)]
    assert pale[1] / pale[0] == pytest.approx(36_864 / 524_288, rel=0.01)
    assert full[0] / pale[0] == pytest.approx(1 / 8, rel=0.01)
    assert full[1] == pytest.approx(pale[1])
    assert "kept 8.00 times" in picture.alt
    assert "You said 100 KiB." in picture.alt


def test_one_chip_has_no_second_bar() -> None:
    alone = [SharedCache("MHA", 524_288, 524_288, 1)]
    picture = cache_by_sharing(alone, MARKS)
    assert 'class="fill-kv"' not in picture.drawing.markup()
    assert "on each" not in picture.alt
