"""Text to token ids and back, and the chat template that stands between a question and a prompt."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Protocol

from jinja2 import Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from tokenizers.decoders import DecodeStream

from core.errors import CheckpointError, RequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

Message = dict[str, str]


class TextStream(Protocol):
    """Turns ids into text one at a time; a character whose bytes are not complete is held back."""

    def step(self, token_id: int) -> str:
        """The text that this token completes; may be empty."""


class TextCodec(Protocol):
    """What the engine asks of a tokenizer."""

    description: str

    def encode(self, text: str) -> list[int]:
        """Ids of a bare text."""

    def encode_chat(self, text: str) -> list[int]:
        """Ids of a text put as a user's message; the bare text where there is no template."""

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some ids, without special tokens."""

    def stream(self) -> TextStream:
        """A fresh stream."""


class ModelText:
    """The tokenizer and the template of a trained model.

    The template is a program from a file, so it runs in Jinja's immutable sandbox.
    """

    description = "the model's own tokenizer"

    def __init__(self, tokenizer: Tokenizer, template: str | None, special: Mapping[str, str]) -> None:
        self.tokenizer = tokenizer
        self._special = dict(special)
        self._template = None if template is None else _template(template)

    def encode(self, text: str) -> list[int]:
        """Ids of a bare text, with the special tokens that the tokenizer adds by itself."""
        return list(self.tokenizer.encode(text).ids)

    def encode_chat(self, text: str) -> list[int]:
        """Ids of the rendered template, which already holds every special token it wants."""
        if self._template is None:
            return self.encode(text)
        return list(self.tokenizer.encode(self.render(text), add_special_tokens=False).ids)

    def render(self, text: str) -> str:
        """The prompt that a chat model sees: the user's message in the template, ready for the answer."""
        if self._template is None:
            return text
        messages: list[Message] = [{"role": "user", "content": text}]
        try:
            return self._template.render(messages=messages, add_generation_prompt=True, **self._special)
        except _TEMPLATE_FAULTS as problem:
            raise CheckpointError(
                f"The model's chat template must render; it failed ({problem}). Use the bare prompt (raw)."
            ) from None

    def decode(self, ids: Iterable[int]) -> str:
        """The text of some ids, without special tokens."""
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=True))

    def stream(self) -> TextStream:
        """A fresh stream over this tokenizer."""
        return _ModelStream(self.tokenizer)


#: What a template from a stranger can raise while it renders; the sandbox stops anything worse.
_TEMPLATE_FAULTS: Final = (
    TemplateError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
)


class _ModelStream:
    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)

    def step(self, token_id: int) -> str:
        return self._stream.step(self._tokenizer, token_id) or ""


def _template(source: str) -> Template:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )

    def refuse(message: str) -> None:
        raise TemplateError(message)

    environment.globals["raise_exception"] = refuse
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    try:
        return environment.from_string(source)
    except (TemplateError, RecursionError) as problem:
        raise CheckpointError(
            f"The model's chat template must be valid Jinja; it is not ({problem}). Download the model again."
        ) from None


class ByteText:
    """A stand-in for models without a tokenizer: one token for each byte of UTF-8.

    Ids past the bytes decode to a dot, since random weights choose them too.
    """

    description = "a stand-in tokenizer, one token per byte"

    def __init__(self, vocab_size: int) -> None:
        if vocab_size < 256:
            raise RequestError(
                f"A shape-only model needs a vocabulary of 256 or more for its bytes; this has {vocab_size}. "
                "Choose another model."
            )

    def encode(self, text: str) -> list[int]:
        """The bytes of the text."""
        return list(text.encode("utf-8", errors="replace"))

    def encode_chat(self, text: str) -> list[int]:
        """The bytes of the text; there is no template."""
        return self.encode(text)

    def decode(self, ids: Iterable[int]) -> str:
        """The bytes read as UTF-8; what is not valid becomes a replacement character."""
        return bytes(token if token < 256 else ord(".") for token in ids).decode("utf-8", errors="replace")

    def stream(self) -> TextStream:
        """A fresh stream."""
        return _ByteStream()


class _ByteStream:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def step(self, token_id: int) -> str:
        return self._decoder.decode(bytes([token_id if token_id < 256 else ord(".")]))


#: llama.cpp's name of a pre-tokenizer -> whether it splits digits one by one before the bytes.
_PRE_TOKENIZERS: Final = {"smollm": True, "gpt-2": False}
_CONTROL_TOKEN: Final = 3  # the token_type of GGUF that marks special tokens


def byte_level_tokenizer(
    tokens: list[str], merges: list[str], token_types: list[int], pre_tokenizer: str
) -> Tokenizer:
    """Build a GPT-2 style tokenizer from the lists in a GGUF file.

    Raises:
        CheckpointError: the file names a pre-tokenizer that is not known here, or its merges do not fit.
    """
    if pre_tokenizer not in _PRE_TOKENIZERS:
        raise CheckpointError(
            f"The tokenizer's pre-tokenizer must be one of {', '.join(_PRE_TOKENIZERS)}; got "
            f"{pre_tokenizer!r}. Use the model's Hugging Face directory, which has a tokenizer.json."
        )
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    for left, right in pairs:  # checked here, since the library stops the process at some of them
        if not {left, right, left + right} <= vocabulary.keys():
            raise CheckpointError(
                f"The tokenizer's merges must join tokens of its vocabulary; {left!r} and {right!r} do not. "
                "Download the model again."
            )
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = [pre_tokenizers.Digits(individual_digits=True)] if _PRE_TOKENIZERS[pre_tokenizer] else []
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([*digits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, token_types, strict=True) if kind == _CONTROL_TOKEN]
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    return tokenizer
