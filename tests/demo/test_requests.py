from itertools import islice
from pathlib import Path

from tokenizers import Tokenizer

from vramscope.demo.requests import LONGEST_TOKENS, PREFIXES, Ask, mixed_requests

CHAT_WORDS = 25  # the template's own tokens, at most
BLOCK_TOKENS = 32


def some(seed: int = 1, count: int = 500) -> list[Ask]:
    return list(islice(mixed_requests(seed, "tiny", ["ad0", "ad1", "ad2"]), count))


def prompt(ask: Ask) -> str:
    return str(ask.body.get("prompt") or ask.body["messages"][0]["content"])


def test_the_same_seed_asks_the_same() -> None:
    assert some(seed=1) == some(seed=1)
    assert some(seed=1) != some(seed=2)


def test_the_mix_has_everything_that_puts_an_engine_under_pressure() -> None:
    asks = some()
    assert {ask.body["model"] for ask in asks} == {"tiny", "ad0", "ad1", "ad2"}
    assert {ask.path for ask in asks} == {"/v1/completions", "/v1/chat/completions"}
    assert {ask.streamed for ask in asks} == {True, False}
    assert any(ask.abort_after_s for ask in asks)
    for prefix in PREFIXES:
        assert sum(prompt(ask).startswith(prefix) for ask in asks) > 20
    assert min(len(prompt(ask)) for ask in asks) < 40
    assert max(len(prompt(ask)) for ask in asks) > 200
    assert {ask.body["max_tokens"] > 90 for ask in asks} == {True, False}


def test_each_request_fits_the_engines(tiny_model: Path) -> None:
    tokenizer = Tokenizer.from_file(str(tiny_model / "tokenizer.json"))
    for ask in some():
        tokens = len(tokenizer.encode(prompt(ask)).ids) + CHAT_WORDS + ask.body["max_tokens"]
        assert tokens <= LONGEST_TOKENS, ask


def test_a_shared_prefix_fills_whole_blocks(tiny_model: Path) -> None:
    tokenizer = Tokenizer.from_file(str(tiny_model / "tokenizer.json"))
    for prefix in PREFIXES:
        assert len(tokenizer.encode(prefix).ids) >= 3 * BLOCK_TOKENS
