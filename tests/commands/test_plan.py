"""`python -m core plan` prints the whole plan, with null where nothing is known yet."""

import json
from typing import Any

import pytest

from core.__main__ import USER_MISTAKE, main
from core.units import significant

KEYS = [
    "fits",
    "memory",
    "prefill",
    "decode",
    "ttft_s",
    "tpot_s",
    "e2e_s",
    "tokens_per_s",
    "usd_per_million_tokens",
    "joules_per_token",
    "range",
    "violations",
    "notes",
    "parallel",
]


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["plan", *arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_contract_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--model llama-3.1-8b --accelerator h100-sxm-80gb --batch 4 --input 1000 --output 100"
    found = answer(capsys, *options.split())
    assert list(found) == KEYS
    assert found["fits"] is True
    assert found["memory"]["weights_bytes"] == 16_060_522_496
    assert found["memory"]["kv_bytes"] == 4 * 1100 * 131_072
    assert set(found["prefill"]) == set(found["decode"]) == {"flops", "bytes", "time_s", "bound"}
    assert found["e2e_s"] == pytest.approx(found["ttft_s"] + 99 * found["tpot_s"])
    assert found["tokens_per_s"] == pytest.approx(4 / found["tpot_s"])
    assert set(found["usd_per_million_tokens"]) == {"input", "output"}
    assert found["joules_per_token"] > 0
    for key in ("ttft_s", "tpot_s"):
        low, high = found["range"][key]
        assert low < found[key] < high
    assert found["violations"] == []


def test_money_follows_price_load_and_chips(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", "llama-3.3-70b", "--tp", "4", "--input", "1000", "--output", "100"]
    one = answer(capsys, *options, "--price", "2")
    dear = answer(capsys, *options, "--price", "4", "--load", "0.5")
    for name in ("input", "output"):
        assert dear["usd_per_million_tokens"][name] == pytest.approx(4 * one["usd_per_million_tokens"][name])
    paid = 4 * 2 / 3600 * one["tpot_s"] * 99 / 100 * 1e6
    assert one["usd_per_million_tokens"]["output"] == pytest.approx(paid)
    assert dear["joules_per_token"] > one["joules_per_token"]


def test_what_cannot_be_computed_is_null_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    torn = answer(capsys, "--tp", "3")
    assert torn["memory"] is torn["prefill"] is torn["ttft_s"] is torn["fits"] is None
    assert len(torn["violations"]) == 3
    unknown = answer(capsys, "--accelerator", "rtx-4080")
    assert unknown["fits"] is None
    assert unknown["memory"]["capacity_bytes"] is None


def test_a_split_model_has_numbers_of_one_replica(capsys: pytest.CaptureFixture[str]) -> None:
    options = "--model llama-3.3-70b --tp 4 --pp 2 --dp 2 --batch 4 --input 1000 --output 100"
    found = answer(capsys, *options.split())
    assert found["fits"] is True
    assert found["violations"] == []
    split = found["parallel"]
    assert {key: split[key] for key in ("tp", "pp", "ep", "dp", "chips")} == {
        "tp": 4, "pp": 2, "ep": 1, "dp": 2, "chips": 16,
    }  # fmt: skip
    assert [stage["layers"] for stage in split["stages"]] == [40, 40]
    assert found["memory"] in [stage["memory"] for stage in split["stages"]]
    assert found["memory"]["kv_bytes"] == 4 * 1100 * 327_680 // 8
    one = answer(capsys, *["--model", "llama-3.3-70b", "--batch", "4", "--input", "1000", "--output", "100"])
    assert one["prefill"]["flops"] == pytest.approx(found["prefill"]["flops"], rel=1e-9)
    assert found["tpot_s"] < one["tpot_s"]
    assert one["fits"] is False


def test_case_does_not_matter(capsys: pytest.CaptureFixture[str]) -> None:
    typed = ["--accelerator", "H100-SXM-80GB", "--network", "InfiniBand-NDR", "--tp", "16"]
    assert answer(capsys, *typed) == answer(capsys, *(word.lower() for word in typed))


@pytest.mark.parametrize(
    ("options", "users", "replicas"),
    [
        ([], 1, 1),
        (["--batch", "4"], 4, 1),
        (["--count", "2"], 1, 2),
        (["--count", "2", "--batch", "3"], 3, 2),
    ],
)
def test_a_rate_says_whose_tokens_it_counts(
    capsys: pytest.CaptureFixture[str], options: list[str], users: int, replicas: int
) -> None:
    rate = answer(capsys, *options)["tokens_per_s"]
    assert main(["plan", *options]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("rate")]
    expected = f"rate        {significant(rate)} tokens/s"
    if replicas > 1:
        of = f" of {users} users" if users > 1 else ""
        expected += f" each, {significant(rate * replicas)} together ({replicas} replicas{of})"
    elif users > 1:
        expected += f" of {users} users together, {significant(rate / users)} each"
    assert line == expected


def test_an_answer_of_one_token_has_no_price_of_written_ones(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "--output", "1")
    assert found["usd_per_million_tokens"]["input"] > 0
    assert found["usd_per_million_tokens"]["output"] is found["joules_per_token"] is None
    assert any("no time per token" in note for note in found["notes"])
    assert main(["plan", "--output", "1"]) == 0
    assert "energy  " not in capsys.readouterr().out


def test_the_cache_is_given_in_every_regime(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", "llama-3.1-8b", "--batch", "3", "--input", "900", "--output", "101"]
    (stage,) = answer(capsys, *options)["parallel"]["stages"]
    token = 131_072
    assert stage["cache"] == {
        "resident_bytes": 3 * 1001 * token,
        "paged_bytes": 3 * 1008 * token,
        "paged_worst_bytes": 3 * 1008 * token,
        "contiguous_bytes": 3072 * token,
    }
    assert stage["memory"]["kv_bytes"] == stage["cache"]["resident_bytes"]


def test_the_count_follows_the_plan_or_is_held_against_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "--tp", "4")["parallel"]["chips"] == 4
    assert answer(capsys, "--tp", "4", "--count", "8")["parallel"]["dp"] == 2
    odd = answer(capsys, "--tp", "4", "--count", "6")
    assert "must use the 6 chips there are; tp 4 times pp 1 times dp 1 is 4" in odd["violations"][0]
    assert odd["parallel"]["nearest"][0]["chips"] == 4
    notes = answer(capsys, "--tp", "4", "--count", "4")["notes"]
    assert not any("without a split" in note for note in notes)


def test_groups_beyond_a_box_ask_for_the_network(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", "llama-3.3-70b", "--tp", "16", "--input", "100", "--output", "20"]
    floor = answer(capsys, *options)
    assert any("Name the network" in note for note in floor["notes"])
    named = answer(capsys, *options, "--network", "infiniband-ndr")
    assert not any("Name the network" in note for note in named["notes"])
    assert named["tpot_s"] > floor["tpot_s"]


def test_context_and_sequence_parallel_degrees(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--model", "llama-3.3-70b", "--tp", "16"]
    plain, shared = answer(capsys, *options), answer(capsys, *options, "--cp", "2", "--sp", "16")
    assert shared["violations"] == []
    assert shared["memory"]["kv_bytes"] * 2 == plain["memory"]["kv_bytes"]
    wrong = answer(capsys, *options, "--cp", "3", "--sp", "2")
    assert len(wrong["violations"]) == 2


def test_everything_wrong_is_said_at_once_with_a_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, *["--model", "llama-3.3-70b", "--tp", "3", "--pp", "2", "--ep", "2"])
    for part in ("64 attention heads", "8 KV heads", "28,672 columns", "needs experts"):
        assert any(part in sentence for sentence in found["violations"]), part
    assert found["parallel"]["nearest"]
    for near in found["parallel"]["nearest"]:
        options = [word for name in ("tp", "pp", "ep", "dp") for word in (f"--{name}", str(near[name]))]
        again = answer(capsys, "--model", "llama-3.3-70b", *options)
        assert again["violations"] == []
        assert again["fits"] is True


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ([], ["of 79.6 GiB: fits", "waits for compute", "waits for memory", "TTFT", "tokens/s", "Note:"]),
        (["--model", "llama-3.3-70b"], ["does not fit", "Problem: "]),
        (["--accelerator", "rtx-4080"], ["an unknown capacity: unknown whether it fits"]),
        (["--accelerator", "t4"], ["Problem: NVIDIA T4 has no bf16 arithmetic. Choose one of"]),
        (["--pp", "2"], ["plan        tp 1, pp 2, ep 1, dp 1: 2 chips", "stage 2     16 layers"]),
        (["--tp", "3"], ["Problem: the tensor-parallel degree, for 3 reasons:\n  - The ", "Would work: tp"]),
        (["--model", "smollm2-135m", "--tp", "9"], ["Problem: The MLP's 1,536 columns"]),
        (["--output", "1"], ["dollars a million tokens; no time per token, so none of written ones"]),
    ],
)
def test_a_person_reads_the_same(
    capsys: pytest.CaptureFixture[str], arguments: list[str], shown: list[str]
) -> None:
    assert main(["plan", *arguments]) == 0
    text = capsys.readouterr().out
    assert all(part in text for part in shown)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--accelerator", "h100"], "got 'h100'. Did you mean h100-"),
        (["--weights", "fb8"], "got 'fb8'. Did you mean fp8"),
        (["--accelerator", "this-computer"], "A prediction for this computer needs its calibration."),
        (["--model", "gpt-5"], "got 'gpt-5'. Did you mean gpt2"),
        (["--kv", "int3"], "A format for kv must be one of"),
        (["--batch", "0"], "--batch must be from 1 to 65,536; got 0"),
        (["--tp", "0"], "--tp must be from 1 to 64; got 0"),
        (["--load", "0"], "--load must be from 0.001 to 1; got 0"),
        (["--load", "1e-320"], "--load must be from 0.001 to 1; got 1e-320"),
        (["--price", "-2"], "--price must be from 0.0001 to 1,000,000; got -2"),
        (["--price", "1e308", "--load", "1e-300", "--json"], "--price must be from"),
        (["--price", "dear"], "--price must be a number from 0.0001 to 1,000,000; got 'dear'"),
        (["--network", "string"], "--network must be one of the 36 known here; got 'string'. See all"),
        (["--input", "-5"], "--input must be from 1 to 2,000,000; got -5"),
    ],
)
def test_a_wrong_argument_is_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["plan", *arguments]) == USER_MISTAKE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(message) or message in captured.err
    assert captured.err.count("\n") == 1
