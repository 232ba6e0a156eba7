"""Pages 5, 7 and 21 for every model and chip of the catalogue: a picture and its numbers, or one sentence."""

import pytest

from core.catalog.accelerators import accelerators
from core.catalog.models import catalogue
from core.errors import UserError
from core.lesson.amount import LessonCase
from core.lesson.catalogue_case import catalogue_case
from core.lesson.lesson_file import lessons
from core.lesson.worked import work
from core.ui.lesson.scenes import PICTURES, Scene

STEMS = ("will_it_fit", "sharing_heads", "hardware_generations")


def shown(stem: str, case: LessonCase) -> str:
    """The page's pictures and numbers as text; a sentence where it has none."""
    lesson = lessons()[stem]
    scene = Scene(lesson, case, None, answered=True)
    try:
        drawn = [PICTURES[name](scene) for name in (lesson.pictures.base, lesson.pictures.answer)]
        numbers = [work(formula, case, lesson.quantities).substituted for formula in lesson.worked]
    except UserError as gap:
        assert str(gap).endswith(".")
        return str(gap)
    return " ".join([*(picture.markup() + picture.alt for picture in drawn), *numbers])


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("model", catalogue())
def test_every_model(stem: str, model: str) -> None:
    text = shown(stem, catalogue_case({**lessons()[stem].base, "model": model}))
    assert "nan" not in text.replace("nano", "")
    assert text


@pytest.mark.parametrize("stem", STEMS)
@pytest.mark.parametrize("chip", accelerators())
def test_every_chip(stem: str, chip: str) -> None:
    changed = {"accelerator": chip, "later": "the scenario's chip"}
    text = shown(stem, catalogue_case({**lessons()[stem].base, **changed}))
    assert "nan" not in text.replace("nano", "")
    assert text


@pytest.mark.parametrize("precision", ["16 bits", "8 bits", "4 bits"])
def test_every_pair_that_page_21_offers(precision: str) -> None:
    lesson = lessons()["hardware_generations"]
    earlier, later = (control.options for control in lesson.controls[:2])
    for before in earlier:
        for after in later:
            values = {**lesson.base, "earlier": before, "later": after, "precision": precision}
            scene = Scene(lesson, catalogue_case(values), None, answered=True)
            try:
                assert PICTURES["sheet_growth"](scene).rows
            except UserError as gap:
                assert "must multiply numbers of" in str(gap)


@pytest.mark.parametrize("chips", ["1", "2", "4", "8", "16", "32"])
@pytest.mark.parametrize("way", ["MHA", "GQA", "MQA", "MLA"])
@pytest.mark.parametrize("model", ["smollm2-135m", "qwen2.5-7b", "deepseek-v3", "jamba-1.5-mini"])
def test_every_setting_of_page_7(model: str, way: str, chips: str) -> None:
    values = {
        **lessons()["sharing_heads"].base,
        "model": model,
        "sharing": way,
        "chips": chips,
        "group": "16",
    }
    text = shown("sharing_heads", catalogue_case(values))
    assert "<svg" in text
