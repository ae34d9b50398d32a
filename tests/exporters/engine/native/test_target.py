import pytest

from vramscope.exporters.engine.native.target import Target, parse_targets
from vramscope.exporters.errors import VramscopeError


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (
            "http://127.0.0.1:8000/metrics",
            Target("127.0.0.1:8000", "http://127.0.0.1:8000/metrics", 8000),
        ),
        ("big=http://localhost:8000", Target("big", "http://localhost:8000/metrics", 8000)),
        (
            "https://engine.example/metrics?x=a=b",
            Target("engine.example", "https://engine.example/metrics?x=a=b"),
        ),
        ("v6=http://[::1]:81/m", Target("v6", "http://[::1]:81/m", 81)),
        ("far=http://192.0.2.1:8000/", Target("far", "http://192.0.2.1:8000/metrics")),
    ],
)
def test_name_address_and_whether_it_is_this_hosts(text: str, target: Target) -> None:
    assert parse_targets([text]) == (target,)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("127.0.0.1:8000", "want http://127.0.0.1:8000/metrics or"),
        ("ftp://127.0.0.1/metrics", "want http://127.0.0.1:8000/metrics or"),
        ("=http://127.0.0.1:8000", "want a name before the '='"),
        ("http://", "want http://127.0.0.1:8000/metrics or"),
        ("http://127.0.0.1:99999/", "(?i)port"),
        ("http://u:secret@127.0.0.1:8000", "want no user or password"),
    ],
)
def test_misuse_says_what_is_wanted(text: str, complaint: str) -> None:
    with pytest.raises(VramscopeError, match=complaint) as raised:
        parse_targets([text])
    assert "secret" not in str(raised.value)


def test_all_mistakes_are_said_at_once() -> None:
    with pytest.raises(VramscopeError) as raised:
        parse_targets(["a=http://h:1", "a=http://h:2", "nonsense"])
    assert "nonsense" in str(raised.value)
    assert "'a' 2 times" in str(raised.value)
