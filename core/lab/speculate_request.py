"""What a visitor may ask of the experiment with speculation: one text, written without and with guesses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal

from core.errors import RequestError
from core.lab.experiment import Experiment
from core.lab.request import RunRequest

#: The experiment's kind; ``core.lab.experiment.KINDS`` has it.
KIND: Final = "speculate"
Draft = Literal["ngram", "layers"]
DRAFTS: Final[tuple[Draft, ...]] = ("ngram", "layers")
#: Bounds that keep both texts, written several times, within a job's time.
MOST_GUESSES: Final = 16
FEWEST_TOKENS: Final = 2
MOST_TOKENS: Final = 96
_MOST_LAYERS: Final = 1000


@dataclass(frozen=True, slots=True)
class SpeculateRequest:
    """One text to write twice, and who guesses.

    Attributes:
        run: the text, its model and formats, and how tokens are chosen.
        draft: "ngram" looks for the last tokens further up in the text, "layers" asks the first layers of
            the same model. layers: how many of them; 0 for "ngram".
        guesses: tokens that are guessed in a round at most.
    """

    run: RunRequest = field(default_factory=lambda: RunRequest(weights="fp32", kv="fp32", raw=True))
    draft: Draft = "ngram"
    layers: int = 0
    guesses: int = 4

    @property
    def is_greedy(self) -> bool:
        """The likeliest token is taken."""
        return self.run.temperature == 0

    @property
    def is_exact(self) -> bool:
        """Both texts must be equal: nothing is drawn, and nothing is rounded to few bits."""
        return self.is_greedy and self.run.weights == self.run.kv == "fp32"

    def experiment(self, title: str) -> Experiment:
        """The job that does it."""
        return Experiment(KIND, self.to_json(), title)

    def validate(self) -> None:
        """Check every limit that can be checked without the model.

        Raises:
            RequestError, FormatError: the first limit that does not hold, as a sentence.
        """
        self.run.validate()
        if self.draft not in DRAFTS:
            raise RequestError(f"The draft must be one of {', '.join(DRAFTS)}; got {self.draft!r}.")
        if self.run.cache != "contiguous":
            raise RequestError(
                "Guesses are verified against kept keys and values, so the cache must be contiguous. Keep it."
            )
        _within("guesses", self.guesses, 1, MOST_GUESSES)
        _within("max_tokens", self.run.max_tokens, FEWEST_TOKENS, MOST_TOKENS)
        least, most = (1, _MOST_LAYERS) if self.draft == "layers" else (0, 0)
        _within(f"layers of the draft {self.draft}", self.layers, least, most)

    def to_json(self) -> dict[str, Any]:
        """A plain dict for a pipe or a file."""
        return {
            "run": self.run.to_json(),
            "draft": self.draft,
            "layers": self.layers,
            "guesses": self.guesses,
        }

    @classmethod
    def from_json(cls, data: object) -> SpeculateRequest:
        """Read a request back and validate it.

        Raises:
            RequestError, FormatError: a value is missing, of another type, or outside its limits.
        """
        names = ("run", "draft", "layers", "guesses")
        if not isinstance(data, dict) or set(data) != set(names):
            raise RequestError(
                f"A request must have exactly the fields {', '.join(names)}; this one has not."
            )
        whole = all(type(data[name]) is int for name in ("layers", "guesses"))
        if not whole or not isinstance(data["draft"], str):
            raise RequestError("The draft must be a word, layers and guesses whole numbers; they are not.")
        request = cls(
            RunRequest.from_json(data["run"]), _draft(data["draft"]), data["layers"], data["guesses"]
        )
        request.validate()
        return request


def _draft(word: str) -> Draft:
    for draft in DRAFTS:
        if word == draft:
            return draft
    raise RequestError(f"The draft must be one of {', '.join(DRAFTS)}; got {word[:40]!r}.")


def _within(name: str, value: int, low: int, high: int) -> None:
    if not low <= value <= high:
        raise RequestError(f"{name} must be from {low:,} to {high:,}; got {value:,}.")
