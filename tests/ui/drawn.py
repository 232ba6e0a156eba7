"""What holds of every picture, whatever it shows."""

import re
from xml.etree import ElementTree

from core.ui.picture import Picture


def drawn_inside(picture: Picture, slack: float = 0.0) -> str:
    """Check a picture and return its markup.

    It is well formed, leaves its frame by no more than ``slack``, has words, and its table is whole.
    """
    markup = picture.drawing.markup()
    ElementTree.fromstring(markup)  # noqa: S314 - our own drawing
    assert "nan" not in markup
    for name, most in (("x", picture.drawing.width), ("y", picture.drawing.height)):
        places = [float(value) for value in re.findall(rf' c?{name}="(-?[\d.]+)"', markup)]
        assert all(0 <= place <= most + slack for place in places), picture.title
    assert len(picture.alt) > 40
    assert all(len(row) == len(picture.columns) for row in picture.rows)
    return markup
