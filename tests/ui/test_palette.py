"""Colours stay apart for every eye, and stand out from both pages."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from core.ui.palette import (
    COLOURS,
    INK,
    MARKS,
    MUTED,
    PAGE,
    PART_OF_KIND,
    PARTS,
    PHASES,
    REQUESTS,
    Mode,
    stylesheet,
)
from core.ui.state_card import LOOKS

#: Full dichromacy, as matrices on linear RGB: https://doi.org/10.1109/TVCG.2009.113, severity 1.0.
EYES = {
    "normal": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
MODES: tuple[Mode, ...] = ("light", "dark")
#: Distances in Oklab times 100; about 2 is just noticeable.
APART_IN_A_GROUP, APART = 10.0, 8.0


def linear(colour: str) -> NDArray[np.float64]:
    value = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def oklab(rgb: NDArray[np.float64]) -> NDArray[np.float64]:
    """https://bottosson.github.io/posts/oklab/."""
    to_lms = np.array(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
    )
    to_lab = np.array(
        [
            [0.2104542553, 0.7936177850, -0.0040720468],
            [1.9779984951, -2.4285922050, 0.4505937099],
            [0.0259040371, 0.7827717662, -0.8086757660],
        ]
    )
    return np.asarray(to_lab @ np.cbrt(to_lms @ np.clip(rgb, 0, 1)))


def contrast(one: str, other: str) -> float:
    """https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio."""
    weights = np.array([0.2126, 0.7152, 0.0722])
    low, high = sorted(float(weights @ linear(colour)) + 0.05 for colour in (one, other))
    return high / low


def distance(one: str, other: str) -> float:
    return min(
        float(100 * np.linalg.norm(oklab(np.array(eye) @ linear(one)) - oklab(np.array(eye) @ linear(other))))
        for eye in EYES.values()
    )


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("group", [PARTS, PHASES], ids=["parts", "phases"])
def test_colours_that_share_a_picture_stay_apart_for_every_eye(group: dict[str, object], mode: Mode) -> None:
    for one, other in combinations(group, 2):
        assert distance(COLOURS[one].on(mode), COLOURS[other].on(mode)) >= APART_IN_A_GROUP, (one, other)


@pytest.mark.parametrize("mode", MODES)
def test_requests_stay_apart_and_carry_letters_of_the_pages_colour(mode: Mode) -> None:
    for one, other in combinations(REQUESTS.values(), 2):
        assert distance(one.on(mode), other.on(mode)) >= APART_IN_A_GROUP, (one, other)
    for colour in REQUESTS.values():
        assert contrast(colour.on(mode), PAGE.on(mode)) >= 4.5


@pytest.mark.parametrize("mode", MODES)
def test_marks_stay_apart_and_stand_out_from_the_page(mode: Mode) -> None:
    for one, other in combinations(MARKS.values(), 2):
        assert distance(one.on(mode), other.on(mode)) >= APART_IN_A_GROUP, (one, other)
    for colour in MARKS.values():
        assert contrast(colour.on(mode), PAGE.on(mode)) >= 3


@pytest.mark.parametrize("mode", MODES)
def test_no_two_meanings_look_the_same(mode: Mode) -> None:
    for one, other in combinations(COLOURS, 2):
        assert distance(COLOURS[one].on(mode), COLOURS[other].on(mode)) >= APART, (one, other)


@pytest.mark.parametrize("mode", MODES)
def test_every_colour_stands_out_from_the_page(mode: Mode) -> None:
    for name, colour in COLOURS.items():
        assert contrast(colour.on(mode), PAGE.on(mode)) >= 3, name
    assert contrast(INK.on(mode), PAGE.on(mode)) >= 7
    assert contrast(MUTED.on(mode), PAGE.on(mode)) >= 4.5


@pytest.mark.parametrize("mode", MODES)
def test_the_edges_of_states_stand_out_from_the_page(mode: Mode) -> None:
    for state, look in LOOKS.items():
        assert contrast(look.colour, PAGE.on(mode)) >= 3, state


def test_each_state_looks_different_without_colour() -> None:
    assert len({look.word for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.sign for look in LOOKS.values()}) == len(LOOKS)


def test_the_stylesheet_names_every_meaning_in_both_modes() -> None:
    css = stylesheet()
    for name, colour in COLOURS.items():
        assert f".fill-{name}{{fill:{colour.light}}}" in css
        assert f'[data-mode="dark"] .fill-{name}{{fill:{colour.dark}}}' in css


def test_every_kind_of_operator_has_a_colour() -> None:
    assert set(PART_OF_KIND.values()) <= set(PARTS)
