"""One well-formed row of published measurements, to be changed by a test."""

from typing import Final

ROW: Final[dict[str, str]] = {
    "id": "x1",
    "model": "Llama-3.1-8B",
    "hf_id": "meta-llama/Llama-3.1-8B",
    "params_b": "8.03",
    "hardware": "H100-80GB SXM",
    "num_devices": "1",
    "weight_bits": "16",
    "kv_bits": "",
    "tp": "1",
    "pp": "1",
    "batch": "1",
    "input_len": "128",
    "output_len": "128",
    "framework": "vLLM",
    "metric": "decode_tok_s_per_user",
    "value": "120",
    "unit": "tok/s",
    "source_url": "https://example.org",
    "source_date": "2025-07",
    "notes": "",
}
