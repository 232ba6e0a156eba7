"""What a visitor may ask of the experiment with a split model: a text, and how many processes write it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from core.analytic.parallel import ParallelPlan
from core.catalog.formats import engine_format
from core.errors import RequestError
from core.lab.experiment import Experiment
from core.lab.request import EMBEDDED_MODEL
from core.lab.typed_json import plain, typed

#: The experiment's kind; ``core.lab.experiment.KINDS`` has it.
KIND: Final = "split"
MOST_RANKS: Final = 8
MOST_TOKENS: Final = 64
_MOST_PROMPT: Final = 2_000


@dataclass(frozen=True, slots=True)
class SplitRequest:
    """One text, written by one process and by several.

    Attributes:
        model, weights, kv: the model and its formats; in fp32 both texts are equal.
        tp, pp: processes that share each layer, and stages.
        prompt: the text to continue, without a chat template. max_tokens: tokens to write.
    """

    model: str = EMBEDDED_MODEL
    weights: str = "fp32"
    kv: str = "fp32"
    tp: int = 3
    pp: int = 1
    prompt: str = "The capital of France is"
    max_tokens: int = 16

    @property
    def plan(self) -> ParallelPlan:
        """How the model is split."""
        return ParallelPlan(tp=self.tp, pp=self.pp)

    def experiment(self, title: str) -> Experiment:
        """The job that does it."""
        return Experiment(KIND, self.to_json(), title)

    def validate(self) -> None:
        """Check every limit that can be checked without the model.

        Raises:
            RequestError, FormatError: the first limit that does not hold, as a sentence.
        """
        engine_format(self.weights, "weights")
        engine_format(self.kv, "kv")
        if min(self.tp, self.pp) < 1 or not 2 <= self.tp * self.pp <= MOST_RANKS:
            raise RequestError(
                f"A split must have 2 to {MOST_RANKS} processes; tp {self.tp} times pp {self.pp} are "
                f"{self.tp * self.pp}. Choose other degrees."
            )
        if not self.prompt.strip() or len(self.prompt) > _MOST_PROMPT:
            raise RequestError(
                f"The prompt must have 1 to {_MOST_PROMPT:,} characters; it has {len(self.prompt.strip()):,}."
            )
        if not 1 <= self.max_tokens <= MOST_TOKENS:
            raise RequestError(f"max_tokens must be from 1 to {MOST_TOKENS}; got {self.max_tokens:,}.")

    def to_json(self) -> dict[str, Any]:
        """A plain dict for a pipe or a file."""
        return plain(self)

    @classmethod
    def from_json(cls, data: object) -> SplitRequest:
        """Read a request back and validate it.

        Raises:
            RequestError, FormatError: it is not an object, or a value does not hold.
        """
        request = typed(cls, data, "A request to split a model")
        request.validate()
        return request
