"""The pictures of "MHA, MQA, GQA, MLA", drawn from a lesson's scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from core.lesson.quantities.head_sharing import chosen, head_shape, shared_caches, words
from core.ui.figures.cache_by_sharing import cache_by_sharing
from core.ui.figures.head_wiring import Wiring, head_wiring
from core.ui.lesson.one_token_scenes import marks
from core.ui.picture import Picture

if TYPE_CHECKING:
    from core.ui.lesson.scenes import Scene


def _head_wiring(scene: Scene) -> Picture:
    case, how = scene.case, chosen(scene.case)
    shape = head_shape(case.model)
    wiring = Wiring(
        query_heads=shape.query_heads,
        kv_heads=how.kv_heads,
        latent=how.latent or 0,
        rotary_key=shape.rotary_dim,
        chips=int(case.number("chips")),
    )
    return head_wiring(wiring, f"A layer of {case.model.name} with {words(case.model, how)}")


def _cache_by_sharing(scene: Scene) -> Picture:
    return cache_by_sharing(shared_caches(scene.case), marks(scene))


PICTURES: Final[Mapping[str, Callable[[Scene], Picture]]] = {
    "head_wiring": _head_wiring,
    "cache_by_sharing": _cache_by_sharing,
}
DRAWN_BY: Final[Mapping[str, tuple[Callable[..., Picture], ...]]] = {
    "head_wiring": (head_wiring,),
    "cache_by_sharing": (cache_by_sharing,),
}
