"""What routing reads from a body: its size, as an estimate."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vramscope.controller.request import MAX_COUNTED_TOKENS, BadRequestError, parse, size

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text("ab", max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)
FIELDS = ("prompt", "messages", "max_tokens", "max_completion_tokens", "n", "best_of")


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"prompt": "12345678", "max_tokens": 5}, (2, 5)),
        ({"prompt": "123456789", "max_tokens": 5}, (3, 5)),  # rounded up
        ({"prompt": [7, 8, 9], "max_tokens": 5}, (3, 5)),  # token ids: exact
        ({"prompt": [[7, 8], [9]], "max_tokens": 5}, (3, 10)),  # two prompts, two answers
        ({"prompt": ["1234", "5678"], "max_tokens": 5}, (2, 10)),
        ({"prompt": "1234", "max_tokens": 5, "n": 3}, (1, 15)),
        ({"prompt": "1234"}, (1, 16)),  # OpenAI's default
        ({"prompt": "1234", "max_tokens": "many", "n": True}, (1, 16)),
        ({}, (0, 16)),
    ],
)
def test_a_completions_tokens(body: dict[str, Any], tokens: tuple[int, int]) -> None:
    assert size(body, chat=False, assumed_output_tokens=256) == tokens


@pytest.mark.parametrize(
    ("body", "tokens"),
    [
        ({"messages": [{"content": "1234"}, {"content": "5678"}]}, (2, 256)),
        ({"messages": [{"content": [{"type": "text", "text": "12345"}]}], "max_tokens": 9}, (2, 9)),
        ({"messages": [{"content": [{"type": "image_url"}]}], "max_tokens": 9}, (0, 9)),
        ({"messages": [], "max_completion_tokens": 8, "max_tokens": 9}, (0, 8)),
        ({"messages": "hello", "n": 2}, (0, 512)),
    ],
)
def test_a_chats_tokens(body: dict[str, Any], tokens: tuple[int, int]) -> None:
    assert size(body, chat=True, assumed_output_tokens=256) == tokens


# The machine may be busy: how long an example takes to make proves nothing.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, JSON)), st.booleans())
def test_no_json_makes_the_estimate_fail(body: dict[str, Any], chat: bool) -> None:
    prompt, output = size(body, chat=chat, assumed_output_tokens=256)
    assert prompt >= 0
    assert 0 < output <= MAX_COUNTED_TOKENS


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=40))
def test_no_bytes_make_the_parser_fail_otherwise_than_it_says(body: bytes) -> None:
    try:
        fields = parse(body)
    except BadRequestError as error:
        said = str(error)
    else:
        said = f"want: {fields['model']}"
    assert "want" in said or "not JSON" in said
