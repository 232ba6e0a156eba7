"""The trial of page 17: what its controls ask the lab for, and what is said of the two texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.lab.request import RunRequest
from core.lab.speculate_record import SpeculateRecord
from core.lab.speculate_request import Draft, SpeculateRequest
from core.lesson.amount import Value
from core.lesson.measures import Checked
from core.lesson.quantities.guess_rounds import Rounds

#: What the lesson file offers as drafts: who guesses, and with how many layers.
DRAFTS: Final[Mapping[str, tuple[Draft, int]]] = {
    "the text so far": ("ngram", 0),
    "the first 6 layers": ("layers", 6),
    "the first 24 layers": ("layers", 24),
}
#: How tokens are chosen: the temperature.
CHOICES: Final[Mapping[str, float]] = {"the likeliest": 0.0, "drawn by chance": 0.8}
_EXACT: Final = "fp32"
_TOKENS: Final = 48
_SHOWN: Final = 8
#: It repeats itself, so that a look further up finds something.
PROMPT: Final = (
    "The red boat goes to the island in the morning and comes back in the evening. The blue boat goes to the "
    "island in the morning and comes back in the evening. The green boat goes to"
)


def request_of(values: Mapping[str, Value]) -> SpeculateRequest:
    """The experiment that the page's controls describe; each value must be one that the lesson offers.

    >>> request_of({"guesses": 3, "trial_draft": "the text so far", "trial_choice": "the likeliest",
    ...             "trial_weights": "int8"}).run.kv
    'bf16'
    """
    draft, layers = DRAFTS[str(values["trial_draft"])]
    weights = str(values["trial_weights"])
    run = RunRequest(
        prompt=PROMPT,
        weights=weights,
        kv=_EXACT if weights == _EXACT else "bf16",
        raw=True,
        max_tokens=_TOKENS,
        temperature=CHOICES[str(values["trial_choice"])],
    )
    return SpeculateRequest(run, draft, layers, int(values["guesses"]))


def equality(record: SpeculateRecord) -> Checked:
    """Whether the two texts are what they must be, and a sentence; texts that are drawn may differ."""
    request, parted = record.request, record.first_difference
    if parted is None:
        return Checked(True, f"Both texts are the same {len(record.plain.token_ids):,} tokens.")
    after = f"they part after {parted:,} tokens"
    if not request.is_greedy:
        return Checked(
            True,
            f"The texts are drawn, and {after}. Guessing uses up other random numbers. Each text is as "
            "likely as the other: the model's chances decide both.",
        )
    if request.is_exact:
        return Checked(
            False,
            f"In fp32 both texts must be equal, and {after}. Rounding tipped a near tie, or the engine has a "
            "fault. Run it again with other guesses.",
        )
    return Checked(
        False,
        f"The texts are not equal, {after}. In {request.run.weights} several rows are computed by other "
        "kernels than one row, which round otherwise, and a near tie falls the other way. Choose fp32 to see "
        "them equal.",
    )


def steps_agree(record: SpeculateRecord) -> Checked:
    """Whether the engine took the simulator's steps, and a sentence."""
    engine, simulated = len(record.guessed.steps), len(record.rounds)
    if record.steps_agree:
        return Checked(True, f"The engine took the {simulated:,} steps of the simulator, count for count.")
    return Checked(
        False,
        f"The engine took {engine:,} steps and the simulator {simulated:,}, or they differ in their counts. "
        "They must agree: the engine or the simulator has a fault.",
    )


def shown_rounds(record: SpeculateRecord) -> Rounds:
    """The first rounds of the text, for the picture; a step without guesses brings one token."""
    rounds = tuple(one for one in record.rounds if one.kind == "decode")[:_SHOWN]
    return Rounds(rounds, record.request.guesses, sum(1 + one.accepted_tokens for one in rounds), len(rounds))
