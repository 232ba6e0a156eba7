"""The style page: every element of the interface once, with made-up numbers.

``streamlit run docs/style_page.py`` shows it. It belongs to no page of the app; it is where a new
element is looked at first, in light and dark, on a wide screen and on a phone.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import streamlit as st

from core.analytic.roofline import RoofMark
from core.ui import (
    export,
    frame,
    number_tiles,
    palette,
    picture,
    print_view,
    side_by_side,
    source,
    state_card,
    worked_number,
)
from core.ui.figures.answer_in_time import answer_in_time
from core.ui.figures.memory_bar import memory_bar
from core.ui.figures.operator_times import operator_times
from core.ui.figures.roofline import roofline
from core.ui.figures.step_times import step_times
from core.ui.number_tiles import Tile
from core.ui.picture import Label, Picture
from core.ui.planner import arithmetic, comparison, levers
from core.ui.planner.found import find
from core.ui.scenario import bar, record
from core.ui.series import Gap
from core.ui.side_by_side import Quantity
from core.ui.svg import Drawing

ROW = 34


def swatches() -> Picture:
    """The palette: each meaning with its colour, filled as measured and outlined as predicted."""
    drawing = Drawing(560, ROW * len(palette.COLOURS) + 6)
    for row, (name, colour) in enumerate(palette.COLOURS.items()):
        y = row * ROW + 6
        drawing.rectangle(4, y, 70, 24, f"fill-{name}")
        drawing.rectangle(84, y, 70, 24, f"outline line-{name}")
        drawing.text(168, y + 17, colour.meaning, "fill-ink")
        drawing.text(330, y + 17, f"{colour.light} light, {colour.dark} dark", "fill-muted")
    return Picture(
        title="The palette",
        drawing=drawing,
        alt="Seven meanings, each with one colour.",
        columns=("meaning", "light", "dark"),
        rows=[(colour.meaning, colour.light, colour.dark) for colour in palette.COLOURS.values()],
        look_at="Predicted is an outline or a dashed line; measured is filled, with its spread.",
        legend=(Label("fill-weights", "an entry of a legend", "with its value"),),
    )


def made_up_operators() -> list[Gap]:
    """Three operators, predicted and measured."""
    return [
        Gap("gate_up", "weights", 0.004, 0.0046, 0.0041, 0.0052),
        Gap("attention", "kv", 0.002, 0.0019, 0.0017, 0.0022),
        Gap("activation", "activations", 0.0005, 0.0006, 0.0005, 0.0008),
    ]


def pictures() -> None:
    """Every picture."""
    steps = np.linspace(0.008, 0.009, 64)
    picture.show(swatches(), key="style_palette")
    if found.plan.memory is not None:
        picture.show(memory_bar(found.plan.memory, found.machine.name), key="style_memory")
    left, right = st.columns(2, gap="large")
    with left:
        picture.show(answer_in_time(0.06, 0.008, 48), key="style_time")
        picture.show(step_times(steps, steps * 1.05), key="style_steps")
    with right:
        passes = [RoofMark("prefill", 3e13, 4e10, 0.06), RoofMark("decode", 1.6e10, 1.5e10, 0.008)]
        picture.show(roofline(passes, 989e12, 3.35e12, "bf16"), key="style_roof")
        picture.show(operator_times(made_up_operators(), "decode"), key="style_operators")


def ignore(_name: str) -> None:
    """A tile of this page opens nothing."""


st.set_page_config(page_title="Style page", layout="wide")
frame.dress()
print_view.switch()
st.title("Does every element look as it should?")
record.adopt_link("style")
bar.draw()
bar.slide("batch")
found = find(record.case_of(record.current()), record.chips()[record.current().accelerator])
number_tiles.show(
    [
        Tile("Memory", "It fits", "18.7 GiB of 79.6 GiB usable", "good"),
        Tile("Memory", "Does not fit", "135 GiB of 79.6 GiB usable", "bad"),
        Tile("TTFT", "62.9 ms", "time to first token"),
    ],
    "Tiles",
    "TTFT",
    key="style_tiles",
    on_choose=ignore,
)
st.header("States", anchor=False)
for state in state_card.LOOKS:
    state_card.state_card(state, "One sentence on where it stands.", 0.4 if state == "measuring" else None)
pictures()
st.header("A worked number", anchor=False)
worked_number.show(arithmetic.worked_number(found, "Memory"), key="style_worked")
st.header("Predicted and measured", anchor=False)
side_by_side.show(
    [
        Quantity("TTFT", "time to first token", "41.0 ms", "44.0 ms", 1.07, (0.98, 1.12)),
        Quantity("TPOT", "time per token", "9.80 ms"),
    ]
)
levers.draw(found)
comparison.draw(found.case)
st.header("A table with its files", anchor=False)
export.show_table(
    ("part", "GiB"),
    [("weights", 15.0), ("KV cache", None)],
    key="style_table",
    file_name="style",
    label="A table",
)
st.error("An error is a sentence: what must hold, what came, and what to do.")
st.warning("A value of the link was repaired, and this says how.", icon=":material/link:")
source.show([("the palette", swatches)], key="style")
