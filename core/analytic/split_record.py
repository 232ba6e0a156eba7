"""What a model that was split over processes did: its text, and every exchange, beside the whole model's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CollectiveRecord:
    """Exchanges of one name, as a process of one stage takes part in them.

    Attributes:
        stage: the pipeline stage, from 0. name: where in the pass it stands, as the operator table says it.
        ranks: processes that take part.
        count: how many there were. message_bytes: of the tensors of all of them together, counted on the
            real ones.
        median_s, p10_s, p90_s: seconds of one, waiting for the other processes included, over all
            processes of the stage.
        predicted_count, predicted_bytes: both as the operator table says; None for what it leaves out.
    """

    stage: int
    name: str
    ranks: int
    count: int
    message_bytes: int
    median_s: float
    p10_s: float
    p90_s: float
    predicted_count: int | None
    predicted_bytes: int | None

    @property
    def is_as_predicted(self) -> bool:
        """Count and bytes are those of the operator table; true for what it leaves out."""
        if self.predicted_count is None:
            return True
        return (self.count, self.message_bytes) == (self.predicted_count, self.predicted_bytes)


@dataclass(frozen=True, slots=True)
class SplitRecord:
    """One prompt, continued greedily by one process and by ``tp * pp``.

    Attributes:
        model, weights, kv, device: what ran. backend: how the processes talk ("gloo", "nccl").
        tp, pp: processes that share each layer, and stages.
        threads, single_threads: processor threads of each process, and of the single one.
        prompt_tokens: tokens of the prompt. steps: passes of the model.
        token_ids, single_token_ids: what both wrote. text: that of the split model.
        logits_error: largest difference between the logits of both after the prompt, over the largest logit.
        stored_bytes: parameters that each process keeps, by rank. single_stored_bytes: likewise.
        collectives: every exchange.
        tokens_per_s, single_tokens_per_s: of the tokens after the first; None where there is one.
    """

    model: str
    weights: str
    kv: str
    device: str
    backend: str
    tp: int
    pp: int
    threads: int
    single_threads: int
    prompt_tokens: int
    steps: int
    token_ids: tuple[int, ...]
    single_token_ids: tuple[int, ...]
    text: str
    logits_error: float
    stored_bytes: tuple[int, ...]
    single_stored_bytes: int
    collectives: tuple[CollectiveRecord, ...]
    tokens_per_s: float | None
    single_tokens_per_s: float | None

    @property
    def equal_to_single(self) -> bool:
        """Both wrote the same tokens."""
        return self.token_ids == self.single_token_ids

    @property
    def is_as_predicted(self) -> bool:
        """Every exchange that the operator table knows was counted as it says."""
        return all(collective.is_as_predicted for collective in self.collectives)
