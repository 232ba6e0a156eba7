"""What a visitor brings: a model from a config.json, a chip from its data sheet, and their file.

Everything stays in the visit; the server keeps nothing. What is wrong is said below the field that
it came from.
"""

from __future__ import annotations

from typing import Any, Final

import streamlit as st

from core.catalog.accelerators import COMPUTE_FORMATS
from core.catalog.custom import LONGEST_NAME, MOST_BYTES, load, own_name, pasted_model, typed_chip
from core.catalog.custom_chip import BANDWIDTH_GB_PER_S, KINDS, MEMORY_GIB, ChipSheet
from core.catalog.hf_config import MAX_CONFIG_CHARACTERS
from core.errors import UserError
from core.ui.plain import plain
from core.ui.scenario import record, words

_TROUBLE: Final = "scenario_brought_trouble"
_PRESSED: Final = "scenario_brought_pressed"
_TURN: Final = "scenario_brought_turn"
#: Under this name a config is looked at that has none yet.
_NAMELESS: Final = "A model"
#: The largest file that is read; what is larger is refused by its size alone.
_MOST_FILE_BYTES: Final = 1_000_000


def model_form() -> None:
    """A name and a config, pasted or from a file."""
    turn = _turn()
    st.text_input("Name", key=f"scenario_model_name_{turn}", max_chars=LONGEST_NAME)
    st.text_area(
        "config.json of a Hugging Face model",
        key=f"scenario_model_text_{turn}",
        height=120,
        max_chars=MAX_CONFIG_CHARACTERS,
        help="Stays in this visit; the server keeps no copy.",
    )
    st.file_uploader(
        "or the file, up to 1 MB", type="json", max_upload_size=1, key=f"scenario_model_file_{turn}"
    )
    st.button("Use this model", key="scenario_model_use", type="primary", on_click=_take_model)
    # What was wrong when the button was pressed stands until name or text is another.
    if st.session_state.get(_PRESSED) != _pressed() or not _trouble("model"):
        _look_at_config()


def chip_form() -> None:
    """The numbers of a data sheet."""
    turn = _turn()
    with st.form(f"scenario_chip_form_{turn}", border=False):
        left, right = st.columns(2)
        left.text_input("Name", key=f"scenario_chip_name_{turn}", max_chars=LONGEST_NAME)
        right.selectbox(
            "Kind",
            list(KINDS),
            format_func=KINDS.__getitem__,
            key=f"scenario_chip_kind_{turn}",
            help="Chips of a kind reach a similar share of their data sheet.",
        )
        with left:
            _quantity("Usable memory, GiB", f"scenario_chip_memory_{turn}", MEMORY_GIB[1])
        with right:
            _quantity("Memory bandwidth, GB/s", f"scenario_chip_bandwidth_{turn}", BANDWIDTH_GB_PER_S[1])
        st.caption("Dense peaks in TFLOP/s, without sparsity; leave out what the chip does not compute.")
        for column, name in zip(st.columns(len(COMPUTE_FORMATS)), COMPUTE_FORMATS, strict=True):
            with column:
                _quantity(name, f"scenario_chip_{name}_{turn}", None)
        st.form_submit_button("Use this chip", type="primary", on_click=_take_chip, key="scenario_chip_use")
    _trouble("chip")


def files() -> None:
    """Save everything to one file, or load such a file."""
    mine = record.own()
    if mine.keys:
        st.download_button(
            "Save to a file",
            mine.to_json,
            "models-and-chips.json",
            "application/json",
            key="scenario_own_save",
            icon=":material/download:",
            on_click="ignore",
        )
    else:
        st.caption(
            "You have brought no model and no chip yet. They last as long as this visit, unless saved."
        )
    st.file_uploader(
        "Load a saved file",
        type="json",
        max_upload_size=1,
        key=f"scenario_own_load_{_turn()}",
        on_change=_take_file,
    )
    _trouble("file")


def remove(key: str) -> None:
    """Forget a model or a chip. Meant as a callback."""
    record.keep(record.own().without(key))


# --- Callbacks ------------------------------------------------------------------------------------


def _take_model() -> None:
    name = str(_value("model_name") or "")
    st.session_state[_PRESSED] = _pressed()
    try:
        found, mine = pasted_model(name, _config_text()), record.own()
        record.keep(mine.with_model(found))
    except UserError as mistake:
        _complain("model", mistake)
        return
    _done()
    record.change(model=mine.model_key(found))


def _pressed() -> int:
    """What the button was pressed on, or would be."""
    return hash((_value("model_name"), _config_text()))


def _look_at_config() -> None:
    """Say what a config comes to as soon as it is there, before the button is pressed."""
    text, name = _config_text(), own_name(str(_value("model_name") or ""))
    if not text:
        return
    try:
        label = words.model_label(pasted_model(name or _NAMELESS, text).spec)
    except UserError as mistake:
        st.error(plain(str(mistake)))
        return
    todo = "Press Use this model." if name else "Type a name, then press Use this model."
    st.success(f"{plain(label)}. {todo}", icon=":material/check_circle:")


def _config_text() -> str:
    file = _value("model_file")
    if file is None:
        return str(_value("model_text") or "")
    if file.size > _MOST_FILE_BYTES:  # the browser refuses it too, but a browser can be passed by
        return " " * (MAX_CONFIG_CHARACTERS + 1)
    return str(file.getvalue().decode("utf-8-sig", "replace"))


def _take_chip() -> None:
    sheet = ChipSheet(
        name=str(_value("chip_name") or ""),
        kind=str(_value("chip_kind") or ""),
        memory_gib=_typed("chip_memory"),
        bandwidth_gb_per_s=_typed("chip_bandwidth"),
        peak_tflop_per_s={
            name: float(value) for name in COMPUTE_FORMATS if (value := _value(f"chip_{name}"))
        },
    )
    try:
        found, mine = typed_chip(sheet), record.own()
        record.keep(mine.with_chip(found))
    except UserError as mistake:
        _complain("chip", mistake)
        return
    _done()
    record.change(accelerator=mine.chip_key(found))


def _take_file() -> None:
    file = _value("own_load")
    if file is None:
        return
    try:
        # One byte more than may be is enough to be refused by its size.
        found, mine = load(file.getvalue()[: MOST_BYTES + 1]), record.own()
        for model in found.models.values():
            mine = mine.with_model(model)
        for chip in found.chips.values():
            mine = mine.with_chip(chip)
    except UserError as mistake:
        _complain("file", mistake)
        return
    record.keep(mine)
    _done()


def _quantity(label: str, key: str, high: float | None) -> None:
    st.number_input(label, 0.0, high, value=None, key=key, step=1.0)


def _value(name: str) -> Any:  # noqa: ANN401 - what a widget holds
    return st.session_state.get(f"scenario_{name}_{_turn()}")


def _typed(name: str) -> float:
    value = _value(name)
    return float(value) if isinstance(value, int | float) else 0.0


def _turn() -> int:
    """Counts what was taken: fields with new keys are empty again, and megabytes leave the browser."""
    return int(st.session_state.setdefault(_TURN, 0))


def _done() -> None:
    st.session_state[_TURN] = _turn() + 1
    st.session_state.pop(_TROUBLE, None)
    st.session_state["scenario_part"] = "Scenario"


def _complain(about: str, mistake: UserError) -> None:
    st.session_state[_TROUBLE] = (about, str(mistake))


def _trouble(about: str) -> bool:
    """Say what was wrong; whether there was anything."""
    whose, sentence = st.session_state.get(_TROUBLE, ("", ""))
    if whose == about:
        st.error(plain(sentence))
    return bool(whose == about)
