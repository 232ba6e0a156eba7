"""The engine: load a model once, then generate, one step after the other.

The loop in ``Engine.generate`` is the whole story: plan a step, run it, choose a token, record it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Literal

import torch

from core.analytic.kv_cache import bytes_per_token
from core.analytic.params import stored_bytes, weight_plan
from core.catalog.formats import engine_format
from core.engine import measure
from core.engine.assemble import assemble, tensor_bytes
from core.engine.batch import Sequence
from core.engine.checkpoint import Checkpoint
from core.engine.kv_cache import KVPool
from core.engine.linear import DTYPES
from core.engine.models import open_checkpoint
from core.engine.records import Generation, TokenEvent
from core.engine.room import require_room
from core.engine.run import Run
from core.engine.runner import make_runner
from core.engine.sampling import Sampler, Sampling
from core.engine.step import StepBytes, Stepper
from core.errors import FormatError, RequestError

CacheKind = Literal["contiguous", "none"]
#: Prompt tokens that one step takes at most; a longer prompt is read in pieces.
PREFILL_TOKENS: Final = 2048
#: The longest sequence that the rotary tables are made for, whatever the model allows.
MAX_POSITIONS: Final = 32_768
#: The cache grows by this many slots, so that a slightly longer request finds room.
SLOT_STEP: Final = 256


class Engine:
    """A loaded model, ready to generate.

    Attributes:
        spec: the model's shape. device: where it runs. weights, kv: ids of its formats.
        cache: "contiguous", or "none", which computes the whole sequence anew in each step.
        kernels: the kernel that was chosen for each operator.
        end_tokens: ids after which the model has finished its answer.
    """

    def __init__(
        self, checkpoint: Checkpoint, *, weights: str, kv: str, cache: CacheKind, device: torch.device
    ) -> None:
        self.spec = checkpoint.spec
        self.text = checkpoint.text
        self.end_tokens = checkpoint.end_tokens
        self.device, self.weights, self.kv, self.cache = device, weights, kv, cache
        self.max_context = min(self.spec.max_context, MAX_POSITIONS)
        self.model = assemble(checkpoint, weights, device, positions=self.max_context)
        self.runner = make_runner(self.model, device)
        self.stepper = Stepper(self.spec, self.runner, self._step_bytes(), device)
        self._pool: KVPool | None = None

    @classmethod
    def load(
        cls,
        model: str | Path,
        *,
        weights: str,
        kv: str,
        cache: CacheKind = "contiguous",
        device: Literal["cpu", "cuda"] = "cpu",
        threads: int | None = None,
    ) -> Engine:
        """Load a model and pack it.

        Args:
            model: "smollm2-135m", "shape:" and a catalogue id (seeded random weights), or a path.
            weights: id of the weight format.
            kv: id of the cache's format.
            cache: keep keys and values, or compute them anew in each step.
            device: where it runs.
            threads: of the CPU; None leaves torch's choice.

        Raises:
            CheckpointError, FormatError, RequestError: a sentence on what does not hold.
        """
        engine_format(weights, "weights")
        if kv not in DTYPES:
            raise FormatError(f"The cache's format must be one of {', '.join(DTYPES)}; got {kv!r}.")
        if cache not in ("contiguous", "none"):
            raise RequestError(f"The cache must be contiguous or none; got {cache!r}.")
        if device == "cuda" and not torch.cuda.is_available():
            raise RequestError("The device cuda must exist here; torch finds none. Choose cpu.")
        if threads is not None:
            torch.set_num_threads(threads)
        checkpoint, where = open_checkpoint(model), torch.device(device)
        require_room(stored_bytes(checkpoint.spec, weights), checkpoint.spec.name, where)
        return cls(checkpoint, weights=weights, kv=kv, cache=cache, device=where)

    # --- Text -----------------------------------------------------------------------------------

    def encode(self, prompt: str, *, raw: bool) -> list[int]:
        """Ids of a prompt, in the model's chat template unless it is raw.

        Raises:
            RequestError: it is not text, or holds halves of characters that no encoding has.
        """
        if not isinstance(prompt, str):
            raise RequestError(f"The prompt must be text; got {type(prompt).__name__}.")
        try:
            prompt.encode("utf-8")
        except UnicodeEncodeError:
            raise RequestError(
                "The prompt must be text in UTF-8; it holds bytes that are not. Type it again."
            ) from None
        return self.text.encode(prompt) if raw else self.text.encode_chat(prompt)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some ids, without special tokens."""
        return self.text.decode(ids)

    # --- Generation -----------------------------------------------------------------------------

    def generate(
        self,
        prompt_ids: list[int],
        sampling: Sampling,
        *,
        max_tokens: int,
        on_token: Callable[[TokenEvent], None] | None = None,
        should_stop: Callable[[], bool] | None = None,
        end_tokens: frozenset[int] | None = None,
    ) -> Generation:
        """Continue a prompt.

        Args:
            prompt_ids: the prompt.
            sampling: how tokens are chosen.
            max_tokens: the most new tokens; the model's context ends the run earlier.
            on_token: called with each token as soon as it is on the host.
            should_stop: asked before each step.
            end_tokens: tokens that end the run; the model's own unless given, none if empty.

        Raises:
            RequestError: the prompt is empty, holds an unknown id, or fills the whole context.
        """
        run = Run(prompt_ids, self.text, self.end_tokens if end_tokens is None else end_tokens)
        limit = self._admit(prompt_ids, max_tokens)
        pool = self.reserve(limit)
        sampler = Sampler(sampling, self.device)
        while run.stop_reason is None:
            if should_stop is not None and should_stop():
                run.stop_reason = "stopped"
                break
            count = self._next_tokens(run.sequence)
            (token,), record = self.stepper.step([(run.sequence, count)], pool, sampler, run.label)
            run.steps.append(record)
            if run.sequence.num_pending == 0:
                run.append(token, limit, on_token)
        return run.finish()

    def _next_tokens(self, sequence: Sequence) -> int:
        """How many pending tokens the next step takes."""
        if self.cache == "none":
            sequence.num_cached = 0
            return sequence.num_pending
        return min(sequence.num_pending, PREFILL_TOKENS)

    def _admit(self, prompt_ids: list[int], max_tokens: int) -> int:
        """Check a request; the length at which its sequence must end."""
        if not prompt_ids:
            raise RequestError("The prompt must have one token or more; it is empty. Type a few words.")
        if len(prompt_ids) >= self.max_context:
            raise RequestError(
                f"The prompt must leave room in the model's context of {self.max_context:,} tokens; it has "
                f"{len(prompt_ids):,}. Shorten it."
            )
        if max_tokens < 1:
            raise RequestError(f"max_tokens must be 1 or more; got {max_tokens}.")
        if not all(0 <= token < self.spec.vocab_size for token in prompt_ids):
            raise RequestError(
                f"Token ids must be from 0 to {self.spec.vocab_size - 1:,}; the prompt has others. "
                "Encode it with this model's tokenizer."
            )
        return min(len(prompt_ids) + max_tokens, self.max_context)

    def reserve(self, slots: int) -> KVPool:
        """A pool with room for this many tokens; the last one is used again when it is large enough."""
        if self._pool is None or self._pool.num_slots < slots:
            self._pool = None  # gone before its successor comes, or both would be in memory
            rounded = -(-slots // SLOT_STEP) * SLOT_STEP
            require_room(rounded * bytes_per_token(self.spec, self.kv), "The cache", self.device)
            self._pool = KVPool(self.spec, rounded, DTYPES[self.kv], self.device)
        return self._pool

    # --- Measurement ----------------------------------------------------------------------------

    def measure_steps(self, context: int, *, steps: int) -> list[float]:
        """Wall seconds of decode steps at this context; see ``core.engine.measure``."""
        return measure.decode_steps(self, context, steps)

    def measure_prefill(self, tokens: int, *, repeats: int) -> list[float]:
        """Wall seconds of reading a prompt of this length; see ``core.engine.measure``."""
        return measure.prefills(self, tokens, repeats)

    def profile(
        self, phase: Literal["prefill", "decode"], *, tokens: int, context: int, repeats: int
    ) -> dict[str, list[float]]:
        """Seconds by operator; see ``core.engine.measure``."""
        return measure.profile(self, phase, tokens=tokens, context=context, repeats=repeats)

    # --- What it keeps and moves ----------------------------------------------------------------

    @property
    def kernels(self) -> dict[str, str]:
        """The kernel of each linear operator, in words."""
        block = self.model.blocks[0]
        return {
            "qkv": block.qkv_linear.name,
            "output": block.output_linear.name,
            "gate_up": block.gate_up_linear.name,
            "down": block.down_linear.name,
            "lm_head": self.model.head.name,
        }

    def tensor_bytes(self) -> dict[str, dict[str, int]]:
        """Bytes of parameters by operator on the real tensors: stored, and read by one decode step."""
        shared = weight_plan(self.weights, self.spec).shared_table
        return tensor_bytes(self.model, self.spec, tied=shared)

    def peak_memory_bytes(self) -> int:
        """The most bytes that the engine's tensors took: weights, tables, cache and activations.

        On a GPU the allocator knows; on a CPU the tensors that live at the end of the largest pass are
        added up.
        """
        if self.device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self.device))
        weights = sum(entry["weight_stored_bytes"] for entry in self.tensor_bytes().values())
        cache = 0 if self._pool is None else self._pool.num_bytes
        scratch = self.model.attend.num_bytes + self.stepper.peak_activation_bytes
        return weights + self.model.rope.num_bytes + cache + scratch

    def _step_bytes(self) -> StepBytes:
        counts = {name: entry["weight_streamed_bytes"] for name, entry in self.tensor_bytes().items()}
        row = counts.pop("embedding")
        return StepBytes(sum(counts.values()), row)
