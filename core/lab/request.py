"""What a visitor may ask the engine for, and the limits of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from core.catalog.formats import engine_format
from core.errors import RequestError

Cache = Literal["contiguous", "paged", "none"]
Device = Literal["cpu", "cuda"]

#: The model that ships with the project's requirements, and the prefix of shape-only models.
EMBEDDED_MODEL: Final = "smollm2-135m"
SHAPE_PREFIX: Final = "shape:"

MAX_PROMPT_CHARACTERS: Final = 20_000
MAX_NEW_TOKENS: Final = 512
CACHES: Final[tuple[Cache, ...]] = ("contiguous", "paged", "none")
DEVICES: Final[tuple[Device, ...]] = ("cpu", "cuda")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One generation to predict, run and compare.

    Attributes:
        model: "smollm2-135m" (the embedded one) or "shape:ID" (a catalogue model's shape with
            seeded random weights). The command line also accepts a directory; a page never does.
        prompt: the visitor's text.
        weights, kv: number formats. cache: keep keys and values in one piece or in
            pages, or recompute them at each step.
        device: where it runs.
        max_tokens: stop after this many new tokens; an end token stops earlier.
        raw: the bare prompt, without the model's chat template.
        temperature: 0 is greedy. top_k: 0 is off. top_p: 1 is off. seed: of the sampler.
    """

    model: str = EMBEDDED_MODEL
    prompt: str = "Why is the sky blue?"
    weights: str = "int4"
    kv: str = "bf16"
    cache: Cache = "contiguous"
    device: Device = "cpu"
    max_tokens: int = 64
    raw: bool = False
    temperature: float = 0.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def validate(self) -> None:
        """Check every limit that can be checked without the model.

        Raises:
            RequestError, FormatError: the first limit that does not hold, as a sentence.
        """
        engine_format(self.weights, "weights")
        engine_format(self.kv, "kv")
        _one_of("cache", self.cache, CACHES)
        _one_of("device", self.device, DEVICES)
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise RequestError("The prompt is empty. Type a few words for the model to continue.")
        if not _is_text(self.prompt):
            raise RequestError(
                "The prompt must be text; this one holds half a character (a lone surrogate) or a zero "
                "byte. Remove it and type it anew."
            )
        if len(self.prompt) > MAX_PROMPT_CHARACTERS:
            raise RequestError(
                f"The prompt may have up to {MAX_PROMPT_CHARACTERS:,} characters; this one has "
                f"{len(self.prompt):,}. Shorten it."
            )
        _within("max_tokens", self.max_tokens, 1, MAX_NEW_TOKENS)
        _within("temperature", self.temperature, 0, 5)
        _within("top_k", self.top_k, 0, 1_000_000)
        _within("top_p", self.top_p, 0.01, 1)
        _within("seed", self.seed, 0, 2**63 - 1)

    def to_json(self) -> dict[str, Any]:
        """A plain dict for a pipe or a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: object) -> RunRequest:
        """Read a request back and validate it.

        Raises:
            RequestError: it is not an object, has a key too many, or a value of another type.
        """
        if not isinstance(data, dict):
            raise RequestError(f"A request must be an object; got {type(data).__name__}.")
        defaults = asdict(cls())
        for key, value in data.items():
            if key not in defaults:
                raise RequestError(f"A request has no field {key!r}; it has {', '.join(defaults)}.")
            expected = type(defaults[key])
            number = expected is float and isinstance(value, int) and not isinstance(value, bool)
            if type(value) is not expected and not number:
                raise RequestError(
                    f"The field {key!r} must be {expected.__name__}; got {type(value).__name__}."
                )
        request = cls(**data)
        request.validate()
        return request


def _is_text(prompt: str) -> bool:
    try:
        prompt.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in prompt


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise RequestError(f"The {name} must be one of {', '.join(choices)}; got {value!r}.")


def _within(name: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:  # also false for a NaN
        raise RequestError(f"{name} must be from {low:,} to {high:,}; got {value:,}.")
