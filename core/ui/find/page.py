"""How the page hangs together: what is asked, the answer, its picture, the ranked list, who is left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import streamlit as st

from core.analytic.cost import HourlyPrice, list_price
from core.analytic.planner_room import Case
from core.analytic.search.candidates import search
from core.analytic.search.ranking import Candidate, front, left_out, ranked
from core.analytic.search.request import Wanted
from core.catalog.accelerator import Accelerator
from core.errors import UserError
from core.ui import export, picture, print_view, prose, source
from core.ui.figures.cost_against_time import CostPoint, cost_against_time, letters
from core.ui.find import controls, link, offers, words
from core.ui.find.answer import Answer, Question, find
from core.ui.find.choices import groups, is_narrow
from core.ui.picture import Picture
from core.ui.plain import plain
from core.ui.planner.money import own_price
from core.ui.scenario import bar, record
from core.ui.table import Cell

_STEM: Final = "find_deployment"
_MS: Final = 1e3
_RANKED: Final = "find_ranked"
#: A list of so many columns scrolls sideways on a phone; its words then need not be broken.
_WHOLE_WORDS: Final = (
    f"<style>.st-key-{_RANKED} :is(td, tbody th) {{ overflow-wrap: normal !important }} "
    f".st-key-{_RANKED} td:not(:nth-child(3)) {{ white-space: nowrap }} "
    f".st-key-{_RANKED} thead th {{ min-width: 0 !important }} "
    f".st-key-{_RANKED} td:nth-child(3) {{ min-width: 4.6rem }} "
    f".st-key-{_RANKED} tbody th {{ min-width: 7rem }}</style>"
)

#: What a visitor sees, and the function that makes it.
SOURCES: Final = (
    ("every candidate, timed and priced", search),
    ("among what is searched", groups),
    ("the ranked list", ranked),
    ("the front", front),
    ("why others are left out", left_out),
    ("the price of an hour", list_price),
    ("the picture", cost_against_time),
    ("the answer in words", words.sentence),
)
COLUMNS: Final = (
    "chip", "chips", "split and replicas", "weights", "KV cache", "batch", "TTFT, ms", "TPOT, ms",
    "free, %", "$ per million tokens", "$ an hour, read on",
)  # fmt: skip
_NOTES: Final = (
    "A candidate is a chip, a split of the model over some of them (a plan), a format for the weights and "
    "one for the KV cache, and a batch: the requests that a replica serves at once. tp n: n chips share "
    "every layer. pp n: n stages in a row, each with some of the layers. ep n: n chips share out the "
    "experts.",
    "Requests come one after another, so a prompt interrupts the answers of the others; the planner times a "
    "batch that begins together, and so shows a shorter TPOT and another TTFT. Times are those of replicas "
    "that are full.",
    "Free is the share of each chip's usable memory that is left. Dollars are for a million tokens of "
    "answers, with their prompts and idle time paid. Only chips are counted: no host, no network, no people.",
    "Prices are on-demand lists read on the day beside them; (old) marks one read more than six months "
    "ago, which may have moved. A price that you type in the planner replaces its list's during this visit.",
    "Times are predictions from data sheets. Every format counts as good enough: whether the answers stay "
    "good with fewer bits is for you to test.",
)


@dataclass(frozen=True, slots=True)
class _Found:
    """An answer with what was asked."""

    case: Case
    wanted: Wanted
    chips: tuple[Accelerator, ...]
    prices: Mapping[str, HourlyPrice]
    answer: Answer

    def price(self, chip: Accelerator) -> HourlyPrice | None:
        """What an hour of a chip was taken to cost."""
        return self.prices.get(chip.id) or list_price(chip)

    def points(self) -> tuple[CostPoint, ...]:
        """The front, with letters."""
        bare = [_point(one) for one in self.answer.front]
        return tuple(replace(point, letter=letter) for point, letter in zip(bare, letters(bare), strict=True))


def show() -> None:
    """Draw the page and keep it going."""
    record.enter(_STEM)
    link.adopt(comes_in=record.comes_in())
    record.adopt_link(_STEM)
    st.fragment(_search, key="find")()
    source.show(SOURCES, key="find")


def _search() -> None:
    """Everything that follows from the scenario and the controls."""
    case = record.case_of(record.current())
    try:
        # Computed before anything is drawn: what is sent in one go is drawn by the browser in one go.
        found = _find(case)
        front_picture = _picture(found)
    except UserError as mistake:
        _asked()
        st.error(plain(str(mistake)))
        return
    _asked()
    answer = found.answer
    said = words.sentence(answer, found.wanted, case.model.name)
    if answer.good:
        prose.paragraph(said)
    else:
        st.error(plain(said))
    if is_narrow(case.model):
        prose.small("This model has many different layers, so only the formats of the scenario are searched.")
    if front_picture is not None:
        _front(found, front_picture)
    if answer.good:
        _ranked(found)
    _left_out(found)
    _notes()


def _front(found: _Found, drawn: Picture) -> None:
    """The picture, and beside it the ways to the planner."""
    points = zip(found.points(), found.answer.front, strict=True)
    left, right = st.columns([5, 3], gap="large")
    with left:
        picture.show(drawn, key="find_front")
    with right:
        offers.draw(found.case.scenario, [(point.letter, one) for point, one in points if point.letter])


def _asked() -> None:
    bar.draw()
    prose.small(
        "The model and the tokens of a request come from this line; chips, how many, formats, split and "
        "batch are searched for."
    )
    controls.draw()
    for note in link.notes():
        st.warning(plain(note), icon=":material/link:")


def _find(case: Case) -> _Found:
    chips = tuple(record.chips().values())
    prices = {chip.id: price for chip in chips if (price := own_price(chip.id)) is not None}
    wanted = controls.wanted(case.scenario)
    question = Question(
        case.model, wanted, case.scenario.weights, case.scenario.kv, chips, tuple(sorted(prices.items()))
    )
    return _Found(case, wanted, chips, prices, find(question))


def _picture(found: _Found) -> Picture | None:
    """The front and every other chip's cheapest; None where nothing that does what is asked has a price."""
    if not found.answer.front:
        return None
    of_front = {(one.chip.id, one.tpot_s, one.usd_per_million) for one in found.answer.front}
    others = [
        _point(one)
        for one in found.answer.of_each_chip
        if (one.chip.id, one.tpot_s, one.usd_per_million) not in of_front
    ]
    return cost_against_time(found.points(), others, found.wanted.tpot_s)


def _point(one: Candidate) -> CostPoint:
    return CostPoint(words.short(one), one.usd_per_million or 0.0, one.tpot_s)


def _ranked(found: _Found) -> None:
    by = link.now().by
    best = found.answer.best[by]
    st.header(f"The best of each chip, by {words.MEASURE_NAMES[by]}", anchor=False)
    if not best:
        prose.small("No chip that does what is asked has a known price. Rank by something else.")
        return
    st.html(_WHOLE_WORDS)
    with st.container(key=_RANKED):
        export.show_table(
            COLUMNS,
            [_row(found, place, one) for place, one in enumerate(best, 1)],
            key=_RANKED,
            file_name="deployments",
            label=f"Deployments by {words.MEASURE_NAMES[by]}",
        )
    offers.draw(found.case.scenario, [(str(place), one) for place, one in enumerate(best, 1)])


def _row(found: _Found, place: int, one: Candidate) -> Sequence[Cell]:
    return (
        f"{place} · {one.chip.name}",
        one.chips,
        words.plan_words(one.plan, one.replicas),
        one.weights,
        one.cache,
        one.batch,
        one.ttft_s * _MS,
        one.tpot_s * _MS,
        100 * one.memory_margin,
        one.usd_per_million,
        words.price_words(found.price(one.chip)),
    )


def _left_out(found: _Found) -> None:
    part = print_view.fold("Why the others are left out", key="find_left_out", icon=":material/filter_alt:")
    if not part.open:
        return
    with part.place:
        export.show_table(
            ("reason", "candidates"),
            words.reasons(found.answer, found.chips),
            key="find_reasons",
            file_name="left-out",
            label="Why candidates are left out",
        )
        prose.small("One candidate may fall for several reasons.")


def _notes() -> None:
    part = print_view.fold("What these numbers mean", key="find_notes", icon=":material/info:")
    if part.open:
        with part.place:
            prose.bullets(_NOTES)
