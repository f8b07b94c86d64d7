"""The greeting: who is let in, what is refused with which sentence, and that no token leaks."""

from __future__ import annotations

import hmac
import tracemalloc
from contextlib import suppress
from typing import Any

import anyio
import msgspec
import pytest
import trio
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from trio.testing import MockClock

from transports import handshake
from transports.connection import BrokenLinkError, Connection, Peer, Timings
from transports.frames import READ_BYTES, pack, pack_greeting
from transports.handshake import (
    HELLO_LIMIT_BYTES,
    NOT_KNOWN,
    PROTOCOL,
    Hello,
    RefusedError,
    accept_tokens,
    answer,
    decode_answer,
    decode_hello,
    greet,
)
from transports.pipe import PipeStream, open_pipe

WORD = "open sesame"
ME = Hello(name="relay", boot="r1", token=WORD)
SERVER = Peer(protocol=PROTOCOL, name="server", boot="s1")
TIMINGS = Timings(handshake_s=10)
FIELDS: dict[str, Any] = {
    "type": "hello",
    "protocol": PROTOCOL,
    "name": "r",
    "boot": "b",
    "token": "",
}
HELLO = {"type": "hello", "protocol": PROTOCOL, "name": "relay", "boot": "r1", "token": WORD}
WELCOME = msgspec.msgpack.encode(
    {"type": "welcome", "protocol": PROTOCOL, "name": "server", "boot": "s1"}
)


def raw(**changed: Any) -> bytes:
    fields = {key: value for key, value in (FIELDS | changed).items() if value is not None}
    return msgspec.msgpack.encode(fields)


async def answered(said: bytes, accept: handshake.Accept = lambda _hello: None) -> str:
    """What the accepting side makes of bytes: the reason, and the refusal that the peer reads."""
    here, there = open_pipe()
    await there.send(said)
    await there.send_eof()
    with pytest.raises(BrokenLinkError) as caught:
        await answer(here, SERVER, accept, TIMINGS)
    heard = await read_all(there)
    if isinstance(caught.value, RefusedError):
        refusal = msgspec.msgpack.decode(heard[4:-4])
        assert refusal == {
            "type": "refusal",
            "protocol": PROTOCOL,
            "reason": caught.value.reason[:500],
        }
    else:
        assert heard == b""
    return caught.value.reason


async def read_all(stream: PipeStream) -> bytes:
    return b"".join([piece async for piece in stream])


# What is said


def test_the_form_is_a_map_with_a_type() -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(ME)) == HELLO


async def test_both_sides_know_each_other_and_nobody_keeps_the_token() -> None:
    here, there = open_pipe()
    found: list[Connection] = []

    async def accepting() -> None:
        found.append(await answer(here, SERVER, accept_tokens({"relay": WORD}), TIMINGS))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(accepting)
        dialler = await greet(there, ME, TIMINGS)
    assert dialler.peer == SERVER
    assert found[0].peer == Peer(protocol=PROTOCOL, name="relay", boot="r1")
    assert type(found[0].peer) is Peer
    assert not hasattr(found[0].peer, "token")


def test_no_text_of_a_hello_has_its_token() -> None:
    for text in (repr(ME), str(ME), f"{ME}", repr([ME])):
        assert WORD not in text
        assert "relay" in text


def test_an_error_in_a_hello_does_not_show_its_token() -> None:
    with pytest.raises(RefusedError) as caught:
        decode_hello(raw(token=WORD, boot=5), SERVER)
    assert WORD not in str(caught.value)
    with pytest.raises(RefusedError) as caught:
        decode_hello(raw(token=WORD * 200), SERVER)
    assert WORD not in str(caught.value)


# Tokens


@pytest.mark.parametrize(
    ("name", "word", "refusal"),
    [
        ("relay", WORD, None),
        ("relay", WORD + "x", NOT_KNOWN),
        ("relay", "", NOT_KNOWN),
        ("stranger", WORD, NOT_KNOWN),
        ("stranger", "", NOT_KNOWN),
        ("open", "", NOT_KNOWN),
        ("relay", "ä🙂", NOT_KNOWN),
        ("schön", "grün", None),
    ],
)
def test_a_token_belongs_to_a_name(name: str, word: str, refusal: str | None) -> None:
    accept = accept_tokens({"relay": WORD, "open": "", "schön": "grün"})
    assert accept(Hello(name=name, boot="b", token=word)) == refusal


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr(hmac, "compare_digest", compare)
    accept = accept_tokens({"relay": WORD})
    assert accept(ME) == NOT_KNOWN
    assert accept(Hello(name="stranger", boot="b", token=WORD)) == NOT_KNOWN
    assert compared == [(WORD.encode(), WORD.encode()), (b"", WORD.encode())]


# Refusals


async def test_a_refused_dialler_hears_why() -> None:
    reason = await answered(pack_greeting(raw()), accept_tokens({"r": WORD}))
    assert reason == NOT_KNOWN


async def test_a_refusal_names_who_was_refused() -> None:
    here, there = open_pipe()
    await there.send(pack_greeting(raw(name="mallory")))
    await there.aclose()
    with pytest.raises(RefusedError) as caught:
        await answer(here, SERVER, lambda _hello: "no", TIMINGS)
    assert (caught.value.name, caught.value.reason) == ("mallory", "no")


async def test_a_long_reason_is_cut_on_the_way() -> None:
    assert await answered(pack_greeting(raw()), lambda _hello: "x" * 2_000) == "x" * 2_000


async def test_another_protocol_is_refused_with_a_sentence_for_both_sides() -> None:
    sentence = (
        "server speaks protocol 2 and the dialler 3: "
        "run versions of pullcord on both sides that share one"
    )
    assert await answered(pack_greeting(raw(protocol=3))) == sentence
    refusal = {"type": "refusal", "protocol": PROTOCOL, "reason": sentence}
    with pytest.raises(RefusedError, match=f"refused: {sentence}"):
        decode_answer(msgspec.msgpack.encode(refusal))


async def test_the_number_is_read_before_what_a_later_version_changed() -> None:
    later = {"type": "greeting", "protocol": 7, "who": ["me"]}
    assert "the dialler 7" in await answered(pack_greeting(msgspec.msgpack.encode(later)))


async def test_a_server_of_another_protocol_is_told_by_the_dialler() -> None:
    welcome = {"type": "welcome", "protocol": 3, "name": "server", "boot": "s"}
    with pytest.raises(BrokenLinkError, match="server speaks protocol 3 and this side 2"):
        decode_answer(msgspec.msgpack.encode(welcome))


# Two protocols: what the first says is a length and a map, and nothing behind it


async def test_the_first_protocol_s_hello_is_refused_in_words_that_it_reads() -> None:
    here, there = open_pipe()
    hello = raw(protocol=1)
    await there.send(len(hello).to_bytes(4, "big") + hello)  # and waits for the answer
    async with trio.open_nursery() as nursery:

        async def refused() -> None:
            with pytest.raises(RefusedError, match="server speaks protocol 2 and the dialler 1"):
                await answer(here, SERVER, lambda _hello: None, TIMINGS)

        nursery.start_soon(refused)
        heard = await there.receive(READ_BYTES)
        await there.aclose()
    length = int.from_bytes(heard[:4], "big")
    refusal = msgspec.msgpack.decode(heard[4 : 4 + length])
    assert refusal["type"] == "refusal"
    assert "server speaks protocol 2 and the dialler 1" in refusal["reason"]


async def test_a_server_of_the_first_protocol_reads_our_hello_and_we_its_refusal() -> None:
    here, there = open_pipe()
    async with trio.open_nursery() as nursery:

        async def refused() -> None:
            with pytest.raises(RefusedError, match="refused: server speaks protocol 1"):
                await greet(here, ME, TIMINGS)

        nursery.start_soon(refused)
        heard = await there.receive(READ_BYTES)
        length = int.from_bytes(heard[:4], "big")
        assert msgspec.msgpack.decode(heard[4 : 4 + length]) == HELLO
        reason = "server speaks protocol 1 and the dialler 2"
        refusal = msgspec.msgpack.encode({"type": "refusal", "protocol": 1, "reason": reason})
        await there.send(len(refusal).to_bytes(4, "big") + refusal)


# Damage


SAID = {"hello": pack_greeting(raw()), "answer": pack_greeting(WELCOME)}


@pytest.mark.parametrize("which", SAID)
async def test_no_single_flip_in_a_greeting_is_taken(which: str) -> None:
    reasons = [await damaged_by(which, 1, bit) for bit in range(8 * len(SAID[which]))]
    assert "the peer closed the connection" in reasons, "where the length says that more will come"
    assert any("a greeting has a wrong checksum" in reason for reason in reasons)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(SAID)), st.integers(1, 2**32 - 1), st.integers(0, 1_000))
def test_no_burst_in_a_greeting_is_taken(which: str, change: int, place: int) -> None:
    trio.run(damaged_by, which, change, place % (8 * len(SAID[which]) - 31))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(SAID)), st.integers(0, 350), st.integers(0, 350))
def test_no_pair_of_flips_in_a_greeting_is_taken(which: str, one: int, other: int) -> None:
    assume(one != other)
    low, high = sorted([one, other])
    trio.run(damaged_by, which, 1 | 1 << high - low, low)


async def damaged_by(which: str, change: int, lowest_bit: int) -> str:
    """Why a greeting with these bits flipped, with a frame behind it, is not taken."""
    said = SAID[which]
    bits = int.from_bytes(said, "big") ^ change << lowest_bit
    here, there = open_pipe()
    await there.send(bits.to_bytes(len(said), "big") + pack(b"next"))
    await there.send_eof()
    with pytest.raises(BrokenLinkError) as caught:
        await (
            answer(here, SERVER, lambda _hello: None, TIMINGS)
            if which == "hello"
            else greet(here, ME, TIMINGS)
        )
    return caught.value.reason


# What is no greeting


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode(["hello", PROTOCOL, "r", "b", ""]),
        raw(protocol="1"),
        raw(protocol=None),
        raw(protocol=True),
        raw(type="welcome"),
        raw(type=None),
        raw(name=None),
        raw(name=""),
        raw(name="x" * 201),
        raw(boot=b"b"),
        raw(token=5),
        raw(token="x" * 1001),
        raw() + b"\0",
        b"\x81\xa8protocol" + b"\x91" * 5_000,
    ],
)
async def test_what_is_no_hello_is_refused(said: bytes) -> None:
    assert (await answered(pack_greeting(said))).startswith("not a hello: ")


async def test_the_longest_legal_hello_fits() -> None:
    longest = raw(name="🙂" * 200, boot="🙂" * 200, token="🙂" * 1000)
    assert len(longest) < HELLO_LIMIT_BYTES
    assert await answered(pack_greeting(longest), lambda _hello: "but no") == "but no"


async def test_a_stranger_may_not_make_us_hold_more_than_a_hello() -> None:
    reason = await answered((HELLO_LIMIT_BYTES + 1).to_bytes(4, "big"))
    assert reason == "frame of 8193 bytes, the limit is 8192"
    assert "this is HTTP" in await answered(b"GET / HTTP/1.1\r\n\r\n")


@pytest.mark.parametrize(
    "said",
    [
        {"type": "welcome", "protocol": PROTOCOL},
        {"type": "hello", "protocol": PROTOCOL, "name": "s", "boot": "b"},
        {"type": "refusal", "protocol": PROTOCOL, "reason": "x" * 501},
        {"type": "welcome", "name": "s", "boot": "b"},
        [1],
    ],
)
def test_what_is_no_answer_breaks_the_link(said: Any) -> None:
    with pytest.raises(BrokenLinkError, match="no answer to a hello"):
        decode_answer(msgspec.msgpack.encode(said))


# Time, and ends


async def test_a_dialler_that_says_nothing_is_given_up(autojump_clock: MockClock) -> None:
    here, there = open_pipe()
    begun_s = autojump_clock.current_time()
    with pytest.raises(BrokenLinkError, match="no greeting within 10 s"):
        await answer(here, SERVER, lambda _hello: None, TIMINGS)
    assert autojump_clock.current_time() - begun_s == 10
    assert await read_all(there) == b""


async def test_a_hello_that_trickles_is_given_up(autojump_clock: MockClock) -> None:
    here, there = open_pipe()
    begun_s = autojump_clock.current_time()

    async def trickling() -> None:
        for byte in pack_greeting(raw()):
            with suppress(anyio.BrokenResourceError):
                await there.send(bytes([byte]))
            await trio.sleep(1)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trickling)
        with pytest.raises(BrokenLinkError, match="no greeting within 10 s"):
            await answer(here, SERVER, lambda _hello: None, TIMINGS)
        nursery.cancel_scope.cancel()
    assert autojump_clock.current_time() - begun_s == 10


async def test_a_server_that_says_nothing_is_given_up(autojump_clock: MockClock) -> None:
    here, there = open_pipe()
    begun_s = autojump_clock.current_time()
    with pytest.raises(BrokenLinkError, match="no welcome within 10 s"):
        await greet(here, ME, TIMINGS)
    assert autojump_clock.current_time() - begun_s == 10
    assert await read_all(there) == pack_greeting(msgspec.msgpack.encode(ME))


async def test_a_welcome_that_nobody_takes_is_given_up(autojump_clock: MockClock) -> None:
    here, there = open_pipe(limit_bytes=100)
    begun_s = autojump_clock.current_time()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(there.send, pack_greeting(raw()))
        with pytest.raises(BrokenLinkError, match="no greeting within 10 s"):
            await answer(
                here,
                Peer(protocol=PROTOCOL, name="s" * 200, boot="b"),
                lambda _hello: None,
                TIMINGS,
            )
    assert autojump_clock.current_time() - begun_s == 10


async def test_a_refused_peer_that_stays_is_closed_all_the_same(autojump_clock: MockClock) -> None:
    here, there = open_pipe()
    begun_s = autojump_clock.current_time()
    await there.send(pack_greeting(raw()))
    with pytest.raises(RefusedError, match="no"):
        await answer(here, SERVER, lambda _hello: "no", TIMINGS)
    assert autojump_clock.current_time() - begun_s == 10
    assert (await read_all(there))[4:].startswith(b"\x83")


async def test_a_refused_peer_that_floods_takes_no_memory(autojump_clock: MockClock) -> None:
    here, there = open_pipe()

    async def flooding() -> None:
        await there.send(pack_greeting(raw()))
        for _ in range(100):
            await there.send(bytes(READ_BYTES))
        await trio.sleep(20)
        with pytest.raises(anyio.BrokenResourceError):
            await there.send(b"x")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(flooding)
        tracemalloc.start()
        with pytest.raises(RefusedError):
            await answer(here, SERVER, lambda _hello: "no", TIMINGS)
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak_bytes < 6 * READ_BYTES
    assert autojump_clock.current_time() >= 20


@pytest.mark.parametrize("said", [b"", pack_greeting(raw())[:3], pack_greeting(raw())[:-1]])
async def test_a_peer_that_closes_in_the_greeting_is_given_up(said: bytes) -> None:
    assert await answered(said) == "the peer closed the connection"


async def test_a_cancelled_greeting_closes_the_stream() -> None:
    for greeting in ("dial", "accept"):
        here, there = open_pipe()
        async with trio.open_nursery() as nursery:
            if greeting == "dial":
                nursery.start_soon(greet, here, ME, TIMINGS)
            else:
                nursery.start_soon(answer, here, SERVER, lambda _hello: None, TIMINGS)
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        await read_all(there)
        with pytest.raises(anyio.BrokenResourceError):
            await there.send(b"x")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["flip", "cut", "2x"]), st.integers(0, 200)), max_size=3),
    st.integers(1, 60),
    st.sampled_from(["hello", "answer"]),
)
def test_damaged_greetings_are_refused_or_heard(
    damages: list[tuple[str, int]], piece_bytes: int, which: str
) -> None:
    """No other exception, no hang, and a stream that is closed unless the greeting was heard."""
    said = bytearray(pack_greeting(raw() if which == "hello" else WELCOME))
    for kind, place in damages:
        at = place % (len(said) + 1)
        if kind == "flip" and at < len(said):
            said[at] ^= 0x11
        elif kind == "cut":
            del said[at:]
        else:
            said[at:at] = said[at : at + 7]

    async def check() -> None:
        here, there = open_pipe()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send_pieces, there, said, piece_bytes)
            try:
                if which == "hello":
                    connection = await answer(here, SERVER, lambda _hello: None, TIMINGS)
                else:
                    connection = await greet(here, ME, TIMINGS)
            except BrokenLinkError:
                with pytest.raises(anyio.ClosedResourceError):
                    await here.receive()
            else:
                assert connection.peer.name == ("r" if which == "hello" else "server")
                await connection.aclose()

    trio.run(check, clock=MockClock(autojump_threshold=0))


async def send_pieces(stream: PipeStream, content: bytearray, piece_bytes: int) -> None:
    """Send piece by piece, as far as the other end takes it."""
    with suppress(anyio.BrokenResourceError):
        for at in range(0, len(content), piece_bytes):
            await stream.send(bytes(content[at : at + piece_bytes]))
