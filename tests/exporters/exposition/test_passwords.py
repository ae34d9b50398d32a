"""Passwords: slow to guess, cheap to repeat."""

import base64

import pytest

from vramscope.exporters.exposition.passwords import NOBODY, REMEMBERED, Passwords


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Checks:
    """Matches a password with the same text; counts."""

    def __init__(self) -> None:
        self.seen: list[tuple[bytes, str]] = []

    def __call__(self, password: bytes, hashed: str) -> bool:
        self.seen.append((password, hashed))
        return password.decode() == hashed


async def test_right_password_is_checked_once() -> None:
    checks = Checks()
    passwords = Passwords({"ada": "one"}, checks)
    assert [await passwords.allow(basic("ada", "one")) for _ in range(3)] == [True] * 3
    assert checks.seen == [(b"one", "one")]
    passwords.close()


async def test_wrong_password_is_checked_each_time() -> None:
    checks = Checks()
    passwords = Passwords({"ada": "one"}, checks)
    assert [await passwords.allow(basic("ada", "two")) for _ in range(3)] == [False] * 3
    assert len(checks.seen) == 3
    passwords.close()


async def test_unknown_user_takes_as_long_as_a_wrong_password() -> None:
    checks = Checks()
    passwords = Passwords({"ada": "one"}, checks)
    assert not await passwords.allow(basic("bob", "one"))
    assert not await passwords.allow(basic("bob", NOBODY))  # even were it found
    assert [hashed for _, hashed in checks.seen] == [NOBODY, NOBODY]
    passwords.close()


async def test_password_may_hold_colons_and_any_letter() -> None:
    passwords = Passwords({"ada": "ö:n:e"}, Checks())
    assert await passwords.allow(basic("ada", "ö:n:e"))
    passwords.close()


async def test_what_is_remembered_is_bounded() -> None:
    users = {f"user{n}": "one" for n in range(2 * REMEMBERED)}
    passwords = Passwords(users, Checks())
    for user in users:
        assert await passwords.allow(basic(user, "one"))
    assert len(passwords._right) == REMEMBERED
    passwords.close()


@pytest.mark.parametrize("length", [71, 72, 73, 200])
async def test_long_password_is_cut_as_the_program_that_hashed_it_does(length: int) -> None:
    import bcrypt

    password = "p" * length
    hashed = bcrypt.hashpw(password[:72].encode(), bcrypt.gensalt(4)).decode()
    passwords = Passwords({"ada": hashed})
    assert await passwords.allow(basic("ada", password))
    assert not await passwords.allow(basic("ada", "p" * 70))
    passwords.close()
