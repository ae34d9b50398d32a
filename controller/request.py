"""What routing needs to know of a request: its model and how much KV memory it will take.

Read from the JSON body, which is passed on to the engine as it came. Sizes are estimates
for scoring, never limits: a wrong one costs a worse pick, not an answer.
"""

import json
import math
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vramscope.exporters.errors import VramscopeError

__all__ = ["BadRequestError", "RouteRequest", "parse", "request_id", "size"]

CHARACTERS_PER_TOKEN = 4
"""English text takes about four characters a token in today's vocabularies; code and other
languages take fewer, so their prompts are underestimated. Exact counts need the model's
tokenizer, which costs more than the pick is worth."""

COMPLETION_DEFAULT_TOKENS = 16
"""max_tokens of /v1/completions where the request has none, in OpenAI's API and in vLLM."""

MAX_COUNTED_TOKENS = 1 << 40
"""Cap on what a request may claim, so that absurd numbers stay ordinary arithmetic."""

SANE_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")


class BadRequestError(VramscopeError):
    """The body is not a request that any engine could answer."""


@dataclass(frozen=True, slots=True)
class RouteRequest:
    """One request, as the policies see it.

    Attributes:
        model: the name asked for: a served model or an adapter.
        adapter: the same name where it is an adapter, else None.
        prompt_tokens: estimated, over all prompts of the request.
        output_tokens: asked for, or assumed, over all answers of the request.
    """

    model: str
    adapter: str | None
    prompt_tokens: int
    output_tokens: int

    @property
    def tokens(self) -> int:
        """Positions of KV memory that the request takes at its end."""
        return self.prompt_tokens + self.output_tokens


def parse(body: bytes) -> dict[str, Any]:
    """Return a request's JSON object, which has a model.

    Raises:
        BadRequestError: it is not JSON, not an object, or names no model. The message shows
            nothing of the body, which may be somebody's prompt.
    """
    try:
        value = json.loads(body)
    except RecursionError as error:
        raise BadRequestError("the body is nested too deeply: want a JSON object") from error
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise BadRequestError(f"the body is not JSON: {error.msg} at {where}") from error
    except ValueError as error:  # not in a Unicode encoding, or a number of thousands of digits
        raise BadRequestError("the body is not JSON: want a JSON object in UTF-8") from error
    if not isinstance(value, dict):
        kind = type(value).__name__
        raise BadRequestError(f"the body is a JSON {kind}: want an object with 'model'")
    model = value.get("model")
    if not isinstance(model, str) or not model:
        raise BadRequestError("'model' is missing or not text: want the name of a served model")
    return value


def size(body: Mapping[str, Any], *, chat: bool, assumed_output_tokens: int) -> tuple[int, int]:
    """Estimate a request's tokens.

    Exact where the prompt is given as token ids; else characters / 4. Images and tools are
    not counted. Fields of a wrong type count as absent: the engine says what is wrong.

    Args:
        body: the request's JSON object.
        chat: whether it is a chat completion.
        assumed_output_tokens: for a chat that sets no limit.

    Returns:
        Prompt tokens and output tokens. ``n`` answers share their prompt's blocks, so they
        multiply the output only.
    """
    answers = max(_count(body.get("n")) or 1, _count(body.get("best_of")) or 1)
    if chat:
        prompts, prompt_tokens = 1, _chat_tokens(body.get("messages"))
        limit = _count(body.get("max_completion_tokens")) or _count(body.get("max_tokens"))
        output = limit or assumed_output_tokens
    else:
        prompts, prompt_tokens = _prompt_tokens(body.get("prompt"))
        output = _count(body.get("max_tokens")) or COMPLETION_DEFAULT_TOKENS
    total = min(output * answers * prompts, MAX_COUNTED_TOKENS)
    return prompt_tokens, total


def request_id(header: str | None) -> str:
    """Keep a client's request id where it is sane, else make one.

    It goes into the engine's logs and the probe's records, so it is short and plain.
    """
    if header is not None and SANE_ID.fullmatch(header):
        return header
    return uuid.uuid4().hex


def _prompt_tokens(prompt: object) -> tuple[int, int]:
    """Return the number of prompts and their tokens."""
    if isinstance(prompt, str):
        return 1, _text_tokens(prompt)
    if not isinstance(prompt, list) or not prompt:
        return 1, 0
    if isinstance(prompt[0], int):  # the ids of one prompt
        return 1, len(prompt)
    tokens = sum(
        _text_tokens(one) if isinstance(one, str) else len(one)
        for one in prompt
        if isinstance(one, str | list)
    )
    return len(prompt), tokens


def _chat_tokens(messages: object) -> int:
    if not isinstance(messages, list):
        return 0
    texts: list[str] = []
    for message in messages:
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else [content]:
            text = part.get("text") if isinstance(part, dict) else part
            if isinstance(text, str):
                texts.append(text)
    return sum(map(_text_tokens, texts))


def _text_tokens(text: str) -> int:
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)


def _count(value: object) -> int | None:
    """Return a positive whole number, or None."""
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return None
    return min(value, MAX_COUNTED_TOKENS)
