"""What was found in words: the answer, why others are left out, what to do where nothing is left."""

from __future__ import annotations

from core.analytic.cost import OLD_AFTER_DAYS, HourlyPrice
from core.analytic.parallel import ParallelPlan
from core.analytic.search.ranking import Candidate, Measure
from core.analytic.search.request import Wanted
from core.catalog.accelerator import Accelerator
from core.ui.find.answer import Answer
from core.units import format_seconds, significant

MEASURE_NAMES: dict[Measure, str] = {"cost": "cost", "memory": "free memory", "latency": "time per token"}


def sentence(answer: Answer, wanted: Wanted, model_name: str) -> str:
    """How many do what is asked; where none does, what stops most of them and what to do."""
    if answer.good:
        return f"{answer.good:,} of {answer.size:,} candidates do what is asked."
    near, first = answer.closest, f"None of the {answer.size:,} candidates does what is asked"
    if not near.computed:
        return (
            f"{first}: {model_name} has a part or a format that no chip here computes; choose another weight "
            "or KV format above, or another model."
        )
    if near.best_margin is None:
        return f"{first}: nobody has published the usable memory of these chips; bring a chip of your own."
    if not near.fitting:
        return (
            f"{first}: {model_name} does not fit, and the nearest needs {significant(1 - near.best_margin)} "
            "times the memory that its chips have; choose a smaller model or fewer tokens."
        )
    return f"{first}: {_too_slow(answer, wanted)}"


def _too_slow(answer: Answer, wanted: Wanted) -> str:
    """Which of the two times stops most of what fits, and what would be long enough."""
    near = answer.closest
    most, why = max(
        (near.late, "give the first token too late"), (near.slow, "take too long for a token after the first")
    )
    needed = []
    if near.ttft_s is not None and near.ttft_s > wanted.ttft_s:
        needed.append(f"more than {format_seconds(near.ttft_s)} for the first token")
    fastest = near.tpot_s if near.tpot_in_time_s is None else near.tpot_in_time_s
    if fastest is not None and fastest > wanted.tpot_s:
        needed.append(f"more than {format_seconds(fastest)} for each token after it")
    return (
        f"of the {near.fitting:,} that fit, {most:,} {why}; allow {' and '.join(needed)}, or choose a "
        "smaller model."
    )


def short(one: Candidate) -> str:
    """A candidate in a few words."""
    return f"{one.chips:,} × {one.chip.name}, {one.weights}, batch {one.batch:,}"


def plan_words(plan: ParallelPlan, replicas: int = 1) -> str:
    """A split and its copies.

    >>> plan_words(ParallelPlan(tp=4, pp=2), 3), plan_words(ParallelPlan()), plan_words(ParallelPlan(), 2)
    ('tp 4, pp 2, 3 replicas', 'no split', '2 replicas')
    """
    degrees = [f"{name} {degree}" for name in ("tp", "pp", "ep") if (degree := getattr(plan, name)) > 1]
    copies = [f"{replicas:,} replicas"] if replicas > 1 else []
    return ", ".join([*degrees, *copies]) or "no split"


def price_words(price: HourlyPrice | None) -> str:
    """An hour's price with its date; one older than half a year is marked.

    >>> price_words(HourlyPrice(2.0, "2020-01-01", "a list")), price_words(HourlyPrice(2.0))
    ('$2.00, 2020-01-01 (old)', '$2.00, typed in')
    """
    if price is None:
        return "unknown"
    age = price.age_days()
    if age is None:
        return f"${price.usd:.3g}, typed in" if price.usd < 0.01 else f"${price.usd:.2f}, typed in"
    return f"${price.usd:.2f}, {price.date}{' (old)' if age > OLD_AFTER_DAYS else ''}"


def reasons(answer: Answer, chips: tuple[Accelerator, ...]) -> list[tuple[str, int]]:
    """Why candidates are left out, and how many for each; announced chips are no candidates."""
    announced = sum(chip.announced for chip in chips)
    found = [(why, number) for why, number in answer.left_out.items() if number]
    return [*found, ("announced chips, not on sale (chips)", announced)] if announced else found
