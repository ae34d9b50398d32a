"""What the demo asks: a fixed sequence of mixed requests, the same in every run."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["LONGEST_TOKENS", "Ask", "mixed_requests"]

PREFIXES = tuple(
    f"You are {who}. Answer the user in short plain words, and say so when you do not know. "
    "Never make up a name, a number or a date."
    for who in ("a support agent", "a translator", "a code reviewer")
)
"""Four KV blocks of 32 tokens each, so that requests find each other's prefix cached."""
LETTERS = "abcdefghijklmnopqrstuvwxyz     "
SHORT_PROMPT, LONG_PROMPT = (10, 40), (90, 150)
SHORT_ANSWER, LONG_ANSWER = (8, 32), (100, 180)
LONGEST_TOKENS = 490
"""Prompt and answer of any of them, in tokens of the tiny model (at most one a character)."""

P_ADAPTER = 0.5
P_PREFIX = 0.5
P_LONG_PROMPT = 0.4
P_LONG_ANSWER = 0.6
P_CHAT = 0.3
P_STREAM = 0.6
P_ABORT = 0.05
ABORT_AFTER_S = (0.05, 1.0)


@dataclass(frozen=True, slots=True)
class Ask:
    """One request.

    Attributes:
        path: of OpenAI's API.
        body: what is posted.
        abort_after_s: when the client hangs up; None when it waits for the whole answer.
    """

    path: str
    body: dict[str, Any]
    abort_after_s: float | None

    @property
    def streamed(self) -> bool:
        """Whether the answer comes token by token."""
        return bool(self.body.get("stream"))


def mixed_requests(seed: int, model: str, adapters: Sequence[str]) -> Iterator[Ask]:
    """Yield requests without end: base model and adapters, shared prefixes, short and long.

    Args:
        seed: of the sequence.
        model: name of the base model.
        adapters: names of its adapters.
    """
    draw = random.Random(seed)  # noqa: S311 - a repeatable load, not a secret
    while True:
        yield ask(draw, draw.choice(adapters) if draw.random() < P_ADAPTER else model)


def ask(draw: random.Random, model: str) -> Ask:
    """Return one request for ``model``."""
    prefix = draw.choice(PREFIXES) + " " if draw.random() < P_PREFIX else ""
    letters = draw.randint(*(LONG_PROMPT if draw.random() < P_LONG_PROMPT else SHORT_PROMPT))
    prompt = prefix + "".join(draw.choices(LETTERS, k=letters)).strip()
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": draw.randint(
            *(LONG_ANSWER if draw.random() < P_LONG_ANSWER else SHORT_ANSWER)
        ),
        "temperature": 0.7,
        "seed": draw.randrange(1 << 31),
        "ignore_eos": True,  # a random model stops at random
    }
    chat = draw.random() < P_CHAT
    if chat:
        body["messages"] = [{"role": "user", "content": prompt}]
    else:
        body["prompt"] = prompt
    if draw.random() < P_STREAM:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    path = "/v1/chat/completions" if chat else "/v1/completions"
    return Ask(path, body, draw.uniform(*ABORT_AFTER_S) if draw.random() < P_ABORT else None)
