"""What a status stands for, and that no sentence holds a key."""

import pytest

from actors.edges.models.failures import Detail, detail_of, of_status, read_detail, without


@pytest.mark.parametrize(
    ("status", "code", "retryable"),
    [
        (302, "refused", False),
        (400, "refused", False),
        (401, "refused", False),
        (403, "refused", False),
        (404, "refused", False),
        (408, "refused", True),
        (413, "refused", False),
        (422, "refused", False),
        (429, "rate_limited", True),
        (500, "server_error", True),
        (502, "server_error", True),
        (503, "rate_limited", True),
        (529, "rate_limited", True),
    ],
)
def test_a_status_says_whether_to_ask_again(status: int, code: str, retryable: bool) -> None:
    error = of_status(status, Detail("because"))
    assert (error.code, error.retryable) == (code, retryable)
    assert str(error).startswith(f"{code}: ")
    assert str(status) in str(error)


def test_a_busy_server_says_how_long_to_wait() -> None:
    assert str(of_status(429, Detail(), "20")).endswith("; it asks to wait 20 s")
    assert "wait" not in str(of_status(429, Detail(), "Wed, 21 Oct 2026 07:28:00 GMT"))


def test_an_account_without_credit_is_not_asked_again() -> None:
    body = b'{"error": {"message": "no credit", "code": "insufficient_quota"}}'
    error = of_status(429, read_detail(body))
    assert (error.code, error.retryable) == ("refused", False)


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        (b'{"error": {"message": "bad", "type": "t"}}', Detail("bad", "t")),
        (b'{"error": {"message": "bad", "type": "t", "code": "c"}}', Detail("bad", "c")),
        (b'{"error": {"message": "bad", "code": 500}}', Detail("bad", "")),
        (b'{"error": "not found"}', Detail("not found")),
        (b'{"message": "top"}', Detail("top")),
        (b"<html>", Detail("<html>")),
        (b"\xff", Detail("\ufffd")),
        (b"[" * 100_000, Detail("[" * 100_000)),
        (b"null", Detail("")),
    ],
)
def test_an_errors_body_is_read_as_far_as_it_says_anything(body: bytes, detail: Detail) -> None:
    assert read_detail(body) == detail


def test_what_a_server_says_is_one_short_line() -> None:
    error = of_status(400, detail_of({"error": {"message": "a\n\n b" + "x" * 5000}}))
    assert "(400: a bxxx" in str(error)
    assert len(str(error)) < 400


def test_secrets_are_hidden_and_an_empty_one_hides_nothing() -> None:
    assert without("key abc, abc", ["abc", ""]) == "key [key], [key]"
