"""What of a run decides how long it takes: formats, cache, and counts. Words and models are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from core.analytic.step_record import PREFILL_TOKENS
from core.catalog.model import ModelSpec
from core.errors import RequestError


@dataclass(frozen=True, slots=True)
class RunShape:
    """Equal requests that arrive together and are answered together.

    Attributes:
        weights, kv: number formats. cached: keys and values are kept, and not computed anew in each step.
        batch: requests. prompt_tokens, new_tokens: of each.
    """

    weights: str
    kv: str
    cached: bool
    batch: int
    prompt_tokens: int
    new_tokens: int

    @property
    def pieces(self) -> list[int]:
        """Prompt tokens of each request that each prefill step reads.

        >>> RunShape("bf16", "bf16", True, 1, 5000, 8).pieces
        [2048, 2048, 904]
        """
        if not self.cached or self.batch > 1:
            return [self.prompt_tokens]
        whole, rest = divmod(self.prompt_tokens, PREFILL_TOKENS)
        return [PREFILL_TOKENS] * whole + [rest] * (rest > 0)

    def check(self, model: ModelSpec) -> None:
        """Check that the requests fit the model's context, and several prompts one step.

        Raises:
            RequestError: they do not, or the prompt has no token.
        """
        if self.prompt_tokens < 1:
            raise RequestError("The prompt must have a token or more; this one has none. Type a few words.")
        needed = self.prompt_tokens + self.new_tokens
        if needed > model.max_context:
            raise RequestError(
                f"{model.name} has a context of {model.max_context:,} tokens; {self.prompt_tokens:,} of the "
                f"prompt and {self.new_tokens:,} new ones are {needed:,}. Shorten the prompt or ask for less."
            )
        together = self.batch * self.prompt_tokens
        if self.batch > 1 and together > PREFILL_TOKENS:
            raise RequestError(
                f"Prompts that arrive together must fit one step of {PREFILL_TOKENS:,} tokens; "
                f"{self.batch} x {self.prompt_tokens:,} are {together:,}. Choose a smaller batch or shorter "
                "prompts."
            )
