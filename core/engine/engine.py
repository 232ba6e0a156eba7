"""The engine: load a model once, then generate, one step after the other.

The loop is ``Server.step``: plan a step, run it, choose tokens, record it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal, get_args

import torch

from core.analytic.params import stored_bytes, weight_plan
from core.engine import measure
from core.engine.assemble import assemble, tensor_bytes
from core.engine.attention import AttentionWay, make_attention
from core.engine.cache_memory import CacheMemory
from core.engine.files.checkpoint import Checkpoint
from core.engine.files.models import open_checkpoint
from core.engine.kv_cache import KVPool
from core.engine.records import Generation, Request, Service, TokenEvent
from core.engine.room import require_known, require_room
from core.engine.runners import SCRATCH_SLOTS, RunnerMode, choose_runner, require_runner
from core.engine.sampling import Sampling
from core.engine.scheduler import CONTINUOUS, Scheduler, Serving
from core.engine.server import Server
from core.engine.speculation import Speculator
from core.engine.step import StepBytes, Stepper
from core.engine.waiting import waiting_for
from core.errors import RequestError

CacheKind = Literal["contiguous", "paged", "none"]
PAGE_TOKENS: Final = 16
#: The longest sequence that the rotary tables are made for, whatever the model allows.
MAX_POSITIONS: Final = 32_768


class Engine:
    """A loaded model, ready to generate.

    Attributes:
        spec: the model's shape. device: where it runs. weights, kv: ids of its formats.
        cache: "contiguous", "paged", or "none", which computes the whole sequence anew in each step.
        page_tokens: tokens in a page of a paged cache.
        kernels: the kernel that was chosen for each operator.
        end_tokens: ids after which the model has finished its answer.
        stored_as: how its file keeps the layers' matrices, an encoding of ``Weight``.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        weights: str,
        kv: str,
        cache: CacheKind,
        device: torch.device,
        page_tokens: int = PAGE_TOKENS,
        runner: RunnerMode = "eager",
        attention: AttentionWay = "auto",
    ) -> None:
        self.spec = checkpoint.spec
        self.text = checkpoint.text
        self.end_tokens = checkpoint.end_tokens
        self.stored_as = checkpoint.stored_as
        self.memory = CacheMemory(checkpoint.spec, kv, device, SCRATCH_SLOTS[runner])
        self.device, self.weights, self.kv, self.cache = device, weights, kv, cache
        self.page_tokens = page_tokens
        self.max_context = min(self.spec.max_context, MAX_POSITIONS)
        attend = make_attention(device, kv, attention)
        self.model = assemble(checkpoint, weights, device, positions=self.max_context, attend=attend)
        self.runner = choose_runner(runner, self.model, device)
        self.stepper = Stepper(self.spec, self.runner, self._step_bytes(), device)

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
        page_tokens: int = PAGE_TOKENS,
        runner: RunnerMode = "eager",
        attention: AttentionWay = "auto",
    ) -> Engine:
        """Load a model and pack it.

        Args:
            model: "smollm2-135m", "shape:" and a catalogue id (seeded random weights), or a path.
            weights: id of the weight format.
            kv: id of the cache's format.
            cache: keep keys and values, in one piece or in pages, or compute them anew in each step.
            device: where it runs.
            threads: of the CPU; None leaves torch's choice.
            page_tokens: tokens in a page of a paged cache.
            runner: operators one by one, or fused by torch's compiler, or as captured CUDA graphs.
            attention: how a GPU reads the cache, see ``core.engine.attention.make_attention``.

        Raises:
            CheckpointError, FormatError, RequestError: a sentence on what does not hold.
        """
        require_known(weights, kv, page_tokens)
        if cache not in get_args(CacheKind):
            raise RequestError(f"The cache must be one of {', '.join(get_args(CacheKind))}; got {cache!r}.")
        where = torch.device(device)
        require_runner(runner, where)
        if threads is not None:
            torch.set_num_threads(threads)
        with waiting_for("reading the model"):
            checkpoint = open_checkpoint(model)
        require_room(stored_bytes(checkpoint.spec, weights), checkpoint.spec.name, where)
        with waiting_for("packing the weights"):
            return cls(
                checkpoint,
                weights=weights,
                kv=kv,
                cache=cache,
                device=where,
                page_tokens=page_tokens,
                runner=runner,
                attention=attention,
            )

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
        speculator: Speculator | None = None,
    ) -> Generation:
        """Continue a prompt.

        Args:
            prompt_ids: the prompt.
            sampling: how tokens are chosen.
            max_tokens: the most new tokens; the model's context ends the run earlier.
            on_token: called with each token as soon as it is on the host.
            should_stop: asked before each step.
            end_tokens: tokens that end the run; the model's own unless given, none if empty.
            speculator: guesses tokens that the model then verifies; None for one token after the other.

        Raises:
            RequestError: the prompt is empty, holds an unknown id, or fills the whole context.
        """
        request = Request(prompt_ids, max_tokens, sampling, end_tokens, on_token=on_token)
        serving = Serving(max_sequences=1, speculator=speculator)
        return self.serve([request], serving, should_stop=should_stop).generations[0]

    def serve(
        self,
        requests: list[Request],
        serving: Serving = CONTINUOUS,
        *,
        should_stop: Callable[[], bool] | None = None,
    ) -> Service:
        """Serve several requests in shared steps.

        Args:
            requests: the prompts, each with its arrival.
            serving: how steps are shared.
            should_stop: asked before each step.

        Raises:
            RequestError: a request is outside the limits, or too long for the cache by itself.
        """
        server = self.server(serving, max((self.admit(request) for request in requests), default=1))
        try:
            for request in requests:
                server.submit(request)
            while not server.is_done and not (should_stop and should_stop()):
                server.step()
        finally:
            server.close()
        return Service(tuple(run.finish() for run in server.runs), tuple(server.steps))

    def server(self, serving: Serving, longest: int) -> Server:
        """A server for requests that grow to ``longest`` tokens; an engine has one at a time.

        Raises:
            RequestError: such a request does not fit the cache, or the cache not into memory.
        """
        page_tokens = self.page_tokens if self.cache == "paged" else longest
        pages_each = -(-longest // page_tokens)
        if serving.cache_tokens:
            num_pages = serving.cache_tokens // page_tokens
        else:
            num_pages = serving.max_sequences * pages_each
            if self.cache == "paged":
                num_pages = self.memory.slots_for(num_pages * page_tokens) // page_tokens
        if num_pages < pages_each:
            raise RequestError(
                f"A request must fit the cache of {serving.cache_tokens:,} tokens by itself; one may grow to "
                f"{longest:,}. Ask for fewer tokens, or give the cache more."
            )
        if self.cache == "none":  # a piece of a prompt would be of no use to the next
            serving = replace(serving, step_tokens=serving.max_sequences * longest)
        if serving.speculator is not None:
            serving.speculator.prepare(self, serving.max_sequences, longest)
        pool, pages = self.memory.paged(num_pages, page_tokens)
        return Server(self, pool, Scheduler(pages, serving))

    def admit(self, request: Request) -> int:
        """Check a request; the length at which its sequence must end."""
        return request.limit(self.max_context, self.spec.vocab_size)

    def reserve(self, slots: int) -> KVPool:
        """A pool with room for this many tokens; the last one is used again when it is large enough."""
        return self.memory.reserve(slots)

    def with_cache(self, kv: str) -> Engine:
        """The same engine over a cache of another format."""
        other = copy(self)
        other.kv, other.memory = kv, CacheMemory(self.spec, kv, self.device)
        return other

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

    @property
    def kernels(self) -> dict[str, str]:
        """The kernel of each linear operator, in words."""
        block = self.model.blocks[0]
        return {
            "qkv": block.qkv_linear.name,
            "output": block.output_linear.name,
            **{
                name: kernels[0].name
                for each in self.model.blocks
                for name, kernels in each.feed_forward.kernels().items()
            },
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
        scratch = self.model.attend.num_bytes + self.stepper.peak_activation_bytes
        return weights + self.model.rope.num_bytes + self.memory.num_bytes + scratch

    def _step_bytes(self) -> StepBytes:
        counts = {name: entry["weight_streamed_bytes"] for name, entry in self.tensor_bytes().items()}
        row = counts.pop("embedding")
        # Which experts a step reads is known when it has run; it counts them itself.
        return StepBytes(sum(size for name, size in counts.items() if not name.startswith("experts")), row)
