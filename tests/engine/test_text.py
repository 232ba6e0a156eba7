"""Text to ids and back: the embedded tokenizer against transformers', streams, templates."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, pre_tokenizers
from transformers import AutoTokenizer

from core.engine.files.models import embedded_file
from core.engine.files.text import ByteText, ModelText, byte_level_tokenizer
from core.errors import CheckpointError, RequestError
from tests.engine.embedded import embedded
from tests.engine.tiny import TEMPLATE, byte_tokenizer

pytestmark = pytest.mark.torch

CORPUS = [
    "Hello world! It's a test, isn't it? They'll say we've won; I'd agree.",
    "  leading, trailing  \n\n\ttabs\t\r\nand\u00a0hard spaces   ",
    "1 22 333 4444 3.14159 1,000,000 0x1F 2024-09-01 +49 (0)30 123456",
    "def f(x: int) -> int:\n    return x**2  # 100%\n\nclass A:\n\tpass\n",
    "naïve café Ångström Straße ĲSSELMEER ﬁne",
    "日本語のテキスト、中文字符，한국어 문장 ไทย हिन्दी العربية עברית Ελληνικά кириллица",
    "🙂🙃👩‍👩‍👧‍👦🏳️‍🌈 ∑∫√π≈ →⇒ ♞ \u200b\u200d\ufeff",
    "<|im_start|>user\nhi<|im_end|>\n<|endoftext|><file_sep> <|im_start|",
    '{"key": [1, 2.5e-3, null], "s": "a\\n\\u00e9"} <a href="x">y</a> $x_{i}^{2}$',
    "",
    "a" * 300 + " " * 40 + "\n" * 20,
]


@pytest.fixture(scope="module")
def reference() -> Any:
    """Transformers' reading of the same file, with the step that its reader leaves out.

    The file says "smollm": numerals stand alone before anything else is split.
    """
    path = embedded_file()
    tokenizer = AutoTokenizer.from_pretrained(str(path.parent), gguf_file=path.name)
    backend = tokenizer.backend_tokenizer
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, backend.pre_tokenizer])
    return tokenizer


def test_ids_are_those_of_transformers(reference: Any) -> None:
    text = embedded().text
    for sample in CORPUS:
        ids = text.encode(sample)
        assert ids == reference(sample)["input_ids"], sample
        assert text.decode(ids) == reference.decode(ids, skip_special_tokens=True), sample


def test_any_text_gives_the_ids_of_transformers(reference: Any) -> None:
    text = embedded().text

    @given(st.text(max_size=80))
    def check(sample: str) -> None:
        assert text.encode(sample) == reference(sample)["input_ids"]

    check()


def test_the_chat_template_is_rendered_as_transformers_does(reference: Any) -> None:
    text = embedded().text
    assert isinstance(text, ModelText)
    for prompt in ("hi", "Two\nlines {{ 7 * 7 }} {% x %}", "🙂 <|im_end|>"):
        messages = [{"role": "user", "content": prompt}]
        expected = reference.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        assert text.render(prompt) == expected
        ids = reference(expected, add_special_tokens=False)["input_ids"]
        assert embedded().encode(prompt, raw=False) == ids


def test_numerals_stand_alone() -> None:
    pieces = [embedded().decode([token]) for token in embedded().encode("12 Ⅷ", raw=True)]
    assert pieces[:3] == ["1", "2", " "]


def test_a_text_comes_back_from_its_ids() -> None:
    text = embedded().text
    for sample in CORPUS:
        if "<" not in sample:  # special tokens are left out of an answer's text
            assert text.decode(text.encode(sample)) == sample


@pytest.mark.parametrize("sample", ["naïve 🙂 日本語", "👩‍👩‍👧‍👦", "plain"])
def test_a_stream_holds_back_what_is_not_whole_and_loses_nothing(sample: str) -> None:
    for text in (embedded().text, ByteText(300), ModelText(byte_tokenizer(), None, {})):
        stream = text.stream()
        deltas = [stream.step(token) for token in text.encode(sample)]
        assert "".join(deltas) == sample
        assert "\ufffd" not in "".join(deltas)


def test_bytes_stand_in_where_there_is_no_tokenizer() -> None:
    text = ByteText(300)
    assert text.encode("é") == [0xC3, 0xA9]
    assert text.decode([0xC3, 0xA9, 299]) == "é."
    with pytest.raises(RequestError, match="256 or more"):
        ByteText(100)


def test_a_template_runs_in_a_sandbox() -> None:
    hostile = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    with pytest.raises(CheckpointError, match="Use the bare prompt"):
        ModelText(byte_tokenizer(), hostile, {}).render("hi")


def test_a_template_may_refuse_in_its_own_words() -> None:
    template = "{{ raise_exception('roles must alternate') }}"
    with pytest.raises(CheckpointError, match="roles must alternate"):
        ModelText(byte_tokenizer(), template, {}).render("hi")


def test_a_template_that_is_none_is_refused() -> None:
    with pytest.raises(CheckpointError, match="chat template must be valid"):
        ModelText(byte_tokenizer(), "{% for %}", {})


def test_templates_get_the_message_and_special_tokens() -> None:
    text = ModelText(byte_tokenizer(), "{{ bos_token }}" + TEMPLATE, {"bos_token": "<s>"})
    assert text.render("hi") == "<s>[user] hi\n[assistant] "
    assert text.encode_chat("hi")[0] == 256


def test_an_unknown_pre_tokenizer_is_refused() -> None:
    with pytest.raises(CheckpointError, match="must be one of smollm, gpt-2; got 'llama-bpe'"):
        byte_level_tokenizer(["a"], [], [1], "llama-bpe")


def test_merges_that_do_not_fit_are_refused() -> None:
    with pytest.raises(CheckpointError, match="merges must join tokens of its vocabulary"):
        byte_level_tokenizer(["a", "b"], ["a b"], [1, 1], "gpt-2")


def test_tokenizers_without_a_template_take_the_prompt_as_it_is() -> None:
    tokenizer: Tokenizer = byte_tokenizer()
    text = ModelText(tokenizer, None, {})
    assert text.encode_chat("hi") == text.encode("hi")
