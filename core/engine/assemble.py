"""Turn a checkpoint into a transformer in a chosen weight format, on a device."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from core.analytic.params import WeightPlan, weight_plan
from core.catalog.model import Layer, ModelSpec, MoE
from core.engine.attention import AttentionBackend
from core.engine.choice import KernelChoices
from core.engine.feed_forward import MLP, Experts, FeedForward
from core.engine.files.checkpoint import (
    EMBEDDING,
    EXPERT_NAMES,
    FINAL_NORM,
    HEAD,
    LAYER_PARTS,
    Checkpoint,
    layer_prefix,
)
from core.engine.files.weight import Weight, stack
from core.engine.kernels import LinearKernel
from core.engine.linear import DTYPES, byte_linear, grouped_linear, make_linear, moved, plain_linear
from core.engine.quantise import groups8, rows8
from core.engine.rope import RopeTable
from core.engine.table import ByteTable, EmbeddingTable, GroupedByteTable, PlainTable
from core.engine.transformer import Block, Transformer


def assemble(
    checkpoint: Checkpoint, weights: str, device: torch.device, *, positions: int, attend: AttentionBackend
) -> Transformer:
    """Pack every tensor and connect the operators.

    Args:
        checkpoint: the model as it was read.
        weights: id of the weight format.
        device: where it will run.
        positions: length of the rotary tables, the longest sequence that can run.
        attend: how the layers read the cache.
    """
    choices = KernelChoices(device)
    parts = _Parts(checkpoint, weight_plan(weights, checkpoint.spec), device, choices, attend)
    table, head = parts.ends()
    blocks = [parts.block(index) for index in range(checkpoint.spec.num_layers)]
    choices.save()
    rope = RopeTable(checkpoint.spec, positions, parts.dtype, device)
    return Transformer(table, blocks, rope, parts.vector(FINAL_NORM), checkpoint.spec.rms_norm_eps, head)


@dataclass(frozen=True, slots=True)
class _Parts:
    checkpoint: Checkpoint
    plan: WeightPlan
    device: torch.device
    choices: KernelChoices
    attend: AttentionBackend

    @property
    def dtype(self) -> torch.dtype:
        """The format of activations, norms and biases."""
        return DTYPES[self.plan.vector.id]

    def vector(self, name: str) -> Tensor:
        return self.checkpoint.weights.weight(name).dense().to(self.device, self.dtype)

    def linear(self, prefix: str, operator: str, *, bias: bool) -> LinearKernel:
        return self.product([prefix + part for part in LAYER_PARTS[operator]], bias=bias)

    def product(self, names: Sequence[str], *, bias: bool) -> LinearKernel:
        source = self.checkpoint.weights
        matrix = stack([source.weight(f"{name}.weight") for name in names])
        offset = torch.cat([source.weight(f"{name}.bias").dense() for name in names]) if bias else None
        return make_linear(matrix, self.plan.linear.id, self.device, bias=offset, choices=self.choices)

    def block(self, index: int) -> Block:
        spec, prefix = self.checkpoint.spec, layer_prefix(index)
        layer = spec.layers[index]
        attention = layer.attention
        norms = (
            [self.vector(f"{prefix}self_attn.{side}_norm.weight") for side in "qk"]
            if attention.qk_norm
            else []
        )
        return Block(
            index,
            layer,
            spec.rms_norm_eps,
            self.attend,
            self.vector(f"{prefix}input_layernorm.weight"),
            self.vector(f"{prefix}post_attention_layernorm.weight"),
            self.linear(prefix, "qkv", bias=attention.qkv_bias),
            self.linear(prefix, "output", bias=attention.output_bias),
            self.feed_forward(prefix, layer),
            *norms,
        )

    def feed_forward(self, prefix: str, layer: Layer) -> FeedForward:
        part = layer.feed_forward
        if not isinstance(part, MoE):
            bias = layer.mlp.bias
            return MLP(*(self.linear(prefix, name, bias=bias) for name in ("gate_up", "down")))
        names = EXPERT_NAMES[self.checkpoint.spec.model_type]
        router = self.vector(f"{prefix}{names.router}.weight")
        gate_up, down = (
            [
                self.product([f"{prefix}{names.experts}.{expert}.{name}" for name in parts], bias=False)
                for expert in range(part.num_experts)
            ]
            for parts in (names.gate_up, names.down)
        )
        routed = plain_linear(router, None, self.choices)
        return Experts(routed, gate_up, down, part.experts_per_token, part.normalised)

    def ends(self) -> tuple[EmbeddingTable, LinearKernel]:
        """The input table and the head; one tensor in memory where the plan says so."""
        plan, stored = self.plan, self.checkpoint.weights.weight(EMBEDDING)
        if plan.table.id == "int8-g32":
            groups = moved(groups8(stored), self.device)
            table: EmbeddingTable = GroupedByteTable(groups, self.dtype)
            if plan.shared_table:
                return table, grouped_linear(groups, None, self.choices)
            return table, self.head(stored)
        words = stored.dense().to(self.device)
        if plan.table.id == "int8":
            rows = rows8(words, torch.bfloat16)
            table = ByteTable(rows.bytes, rows.scale, self.dtype)
            if plan.shared_table:
                return table, byte_linear(rows, None, self.choices)
        else:
            kept = words.to(DTYPES[plan.table.id])
            table = PlainTable(kept)
            if plan.shared_table:
                return table, plain_linear(kept, None, self.choices)
        return table, self.head(words)

    def head(self, words: Tensor | Weight) -> LinearKernel:
        """The head by itself; from the table's numbers where embeddings are tied."""
        matrix = words if self.checkpoint.spec.tied_embeddings else self.checkpoint.weights.weight(HEAD)
        return make_linear(matrix, self.plan.head.id, self.device, choices=self.choices)


def tensor_bytes(model: Transformer, spec: ModelSpec, *, tied: bool) -> dict[str, dict[str, int]]:
    """Bytes of parameters by operator, counted on the real tensors.

    ``weight_stored_bytes`` are kept in memory, ``weight_streamed_bytes`` are read by one decode step
    of one sequence. Operators without parameters are left out.

    Args:
        model: the assembled model.
        spec: its shape.
        tied: the head reads the table's memory, which is then not counted twice as stored.
    """
    table = sum(tensor.nbytes for tensor in model.table.tensors)
    counts = {"embedding": {"stored": table, "streamed": table // spec.vocab_size}}
    for block in model.blocks:
        for operator, stored, streamed in _block_bytes(block):
            entry = counts.setdefault(operator, {"stored": 0, "streamed": 0})
            entry["stored"] += stored
            entry["streamed"] += streamed
    norm, head = model.final_norm_weight.nbytes, model.head.num_bytes
    counts["final_norm"] = {"stored": norm, "streamed": norm}
    counts["lm_head"] = {"stored": 0 if tied else head, "streamed": head}
    return {
        name: {f"weight_{kind}_bytes": size for kind, size in entry.items()} for name, entry in counts.items()
    }


def _block_bytes(block: Block) -> Iterable[tuple[str, int, int]]:
    """Each operator of a layer, the bytes that it keeps, and those that a step of one token reads."""
    always = {
        "attention_norm": block.attention_norm_weight.nbytes,
        "qkv": block.qkv_linear.num_bytes,
        "output": block.output_linear.num_bytes,
        "mlp_norm": block.mlp_norm_weight.nbytes,
    }
    if block.query_norm_weight is not None and block.key_norm_weight is not None:
        always["qk_norm"] = block.query_norm_weight.nbytes + block.key_norm_weight.nbytes
    yield from ((name, size, size) for name, size in always.items())
    for name, kernels in block.feed_forward.kernels().items():
        yield name, sum(kernel.num_bytes for kernel in kernels), block.feed_forward.streamed_bytes(name)
