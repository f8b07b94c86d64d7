"""Pages of hosts that are named: what is got, and that no name or redirection leads elsewhere."""

import ssl
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Any

import pytest
import trio
import trustme
from hypothesis import given
from hypothesis import strategies as st

from actors.edges.tools.tool import ToolError
from actors.edges.tools.web import BODY_LIMIT_BYTES, Host, HostError, HttpGet, is_public, resolve
from tests.actors.edges.tools.web_server import page, serving


def tool(*hosts: str, private: Sequence[str] = (), **how: Any) -> HttpGet:
    public = [Host.parse(one) for one in hosts]
    return HttpGet([*public, *(Host.parse(one, private=True) for one in private)], **how)


async def get(using: HttpGet, url: str) -> str:
    return await using.call({"url": url})


async def refusal(using: HttpGet, url: str) -> str:
    with pytest.raises(ToolError) as error:
        await get(using, url)
    return str(error.value)


def looks_up(*addresses: str) -> Any:
    """A resolver by which every host has these addresses."""

    async def look_up(_name: str, _port: int) -> Sequence[str]:
        await trio.lowlevel.checkpoint()
        return addresses

    return look_up


async def test_a_page_is_got_with_its_status_and_type() -> None:
    async with serving({"/a?b=c": page("<p>ä</p>")}) as server:
        local = f"http://127.0.0.1:{server.port}"
        text = await get(tool(private=[local]), f"{local}/a?b=c#part")
    assert text == f"HTTP 200 text/html from {local}/a?b=c#part\n\n<p>ä</p>"
    [request] = server.seen
    assert request.startswith("GET /a?b=c HTTP/1.1\r\n")
    lower = request.lower()
    assert f"host: 127.0.0.1:{server.port}" in lower
    assert "cookie" not in lower
    assert "authorization" not in lower


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://docs.example.org/", "none of the hosts that may be asked"),  # not over HTTPS
        ("https://docs.example.org:8443/", "none of the hosts"),
        ("https://other.example.org/", "none of the hosts"),
        ("https://docs.example.org.evil.com/", "none of the hosts"),
        ("https://evil.com/https://docs.example.org/", "none of the hosts"),
        ("https://docs.example.org@evil.com/", "has no password here"),
        ("https://evil.com#@docs.example.org/", "none of the hosts"),
        ("https://evil.com\\@docs.example.org/", ""),
        ("https://sub.example.net.evil.com/", "none of the hosts"),
        ("https://example.net/", "none of the hosts"),  # *.example.net is what is below it
        ("https://evilexample.net/", "none of the hosts"),
        ("file:///etc/passwd", "begins with https://"),
        ("gopher://docs.example.org/", "begins with https://"),
        ("docs.example.org", "begins with https://"),
        ("", "begins with https://"),
        ("https://", "begins with https://"),
        ("https://[::1", "no URL"),
        ("https://docs.example.org:99999/", ""),
        ("https://do\0cs.example.org/", ""),
        ("https://2130706433/", "none of the hosts"),
        ("https://0x7f.1/", "none of the hosts"),
        ("https://" + "a" * 3_000, ""),
    ],
)
async def test_a_url_of_another_host_is_refused(url: str, words: str) -> None:
    using = tool("docs.example.org", "*.example.net", look_up=looks_up("127.0.0.1"))
    said = await refusal(using, url)
    assert words in said
    assert "no host of the public Internet" not in said  # it was not even looked up


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.0.0.1", "172.16.5.4", "192.168.1.1", "169.254.169.254", "0.0.0.1",
        "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0",
        "fc00::1", "ff02::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
        "2002:7f00:1::", "::127.0.0.1", "2001:db8::1", "nonsense", "240.0.0.1",
    ],
)  # fmt: skip
async def test_a_name_with_a_private_address_is_refused(address: str) -> None:
    assert not is_public(address)
    using = tool("docs.example.org", look_up=looks_up("93.184.215.14", address))
    assert "no host of the public Internet" in await refusal(using, "https://docs.example.org/")


@pytest.mark.parametrize("address", ["93.184.215.14", "1.1.1.1", "2606:4700::1111"])
def test_a_public_address_is_one(address: str) -> None:
    assert is_public(address)


@given(st.integers(0, 2**32 - 1))
def test_an_address_within_an_address_is_judged_like_it(number: int) -> None:
    inner = IPv4Address(number)
    for prefix in (0x64FF9B << 96, 0xFFFF << 32):
        within = str(IPv6Address(prefix | number))
        assert is_public(within) == is_public(str(inner)), within


async def test_an_address_that_is_listed_must_still_be_public() -> None:
    assert "no host of the public" in await refusal(tool("127.0.0.1"), "https://127.0.0.1/")
    assert "no host of the public" in await refusal(tool("[::1]"), "https://[::1]/")


async def test_the_connection_goes_to_the_address_that_was_looked_at() -> None:
    answers = [["127.0.0.1"], ["192.0.2.1"]]  # at a second look the name means something else

    async def rebinding(_name: str, _port: int) -> Sequence[str]:
        await trio.lowlevel.checkpoint()
        return answers.pop(0)

    async with serving({"/": page("here")}) as server:
        url = f"http://nowhere.invalid:{server.port}/"
        text = await get(tool(private=[url.rstrip("/")], look_up=rebinding), url)
    assert text.endswith("here")
    assert len(answers) == 1
    assert f"host: nowhere.invalid:{server.port}" in server.seen[0].lower()


async def test_the_certificate_must_be_the_names() -> None:
    authority = trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("docs.example.org").configure_cert(context)
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    how = {"look_up": looks_up("127.0.0.1"), "trust": trust}
    async with serving({"/": page("safe")}, context) as server:
        good, bad = (f"https://{name}.example.org:{server.port}" for name in ("docs", "other"))
        using = tool(private=[good, bad], **how)
        assert (await get(using, good + "/")).endswith("safe")
        assert "certificate" in (await refusal(using, bad + "/")).lower()


async def test_a_redirection_is_looked_at_like_the_first() -> None:
    async with serving({}) as server:
        local = f"http://127.0.0.1:{server.port}"
        server.pages = {
            "/start": page("", "302 Found", Location="next", Set_Cookie="a=b"),
            "/next": page("end"),
            "/out": page("", "301 Moved", Location="https://evil.example.com/"),
            "/meta": page("", "307 Moved", Location="http://169.254.169.254/latest/meta-data"),
            "/loop": page("", "302 Found", Location="/loop"),
            "/file": page("", "302 Found", Location="file:///etc/passwd"),
            "/none": page("", "302 Found", Location="//[::1"),
            "/idna": page("", "302 Found", Location="https://xn--/"),
        }
        using = tool(private=[local])
        assert (await get(using, f"{local}/start")).endswith("end")
        assert "cookie" not in server.seen[1].lower()
        assert "evil.example.com is none of the hosts" in await refusal(using, f"{local}/out")
        assert "169.254.169.254 is none of the hosts" in await refusal(using, f"{local}/meta")
        assert "more than 5 times" in await refusal(using, f"{local}/loop")
        assert "begins with https" in await refusal(using, f"{local}/file")
        assert "Invalid URL" in await refusal(using, f"{local}/none")
        assert "no URL" in await refusal(using, f"{local}/idna")


async def test_a_redirection_to_a_listed_name_that_is_private_is_refused() -> None:
    async with serving({}) as server:
        local = f"http://127.0.0.1:{server.port}"
        server.pages = {"/": page("", "302 Found", Location="https://docs.example.org/")}
        using = tool("docs.example.org", private=[local], look_up=looks_up("10.0.0.7"))
        assert "no host of the public Internet" in await refusal(using, f"{local}/")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (page(b"\x89PNG", Content_Type="image/png"), "HTTP 200: the answer is image/png"),
        (page("gone\n\nfor  ever", "404 Not Found"), "HTTP 404: gone for ever"),
        (page("", "500 Broken"), "HTTP 500"),
        (page(b"x", Content_Encoding="gzip"), "compressed"),
        (page(b"x" * (BODY_LIMIT_BYTES + 1)), "more than 2,097,152 bytes"),
        (b"nonsense\r\n\r\n", "it can't be got"),
        (b"", "it can't be got"),
    ],
)
async def test_what_is_no_page_is_told(answer: bytes, words: str) -> None:
    async with serving({"/": answer}) as server:
        local = f"http://127.0.0.1:{server.port}"
        assert words in await refusal(tool(private=[local]), f"{local}/")


@pytest.mark.parametrize(
    ("kind", "raw", "text"),
    [
        ("application/json", b'{"a": 1}', '{"a": 1}'),
        ("application/ld+json", b"{}", "{}"),
        ("text/plain; charset=latin-1", b"\xe4", "ä"),
        ("text/plain; charset=no-such", b"a", "a"),
        ("text/plain", b"\xff", "\ufffd"),
    ],
)
async def test_text_of_any_kind_is_decoded(kind: str, raw: bytes, text: str) -> None:
    async with serving({"/": page(raw, Content_Type=kind)}) as server:
        local = f"http://127.0.0.1:{server.port}"
        assert (await get(tool(private=[local]), f"{local}/")).endswith(f"\n\n{text}")


PARTS = st.sampled_from(
    [
        "https://", "http://", "docs.example.org", "@", ":", "[", "]", "%", "%00", "/", "\\", "?",
        "#", "xn--", "ä", "1", ".", " ", "\t", "\0", "\u202e", "\u2024", "\uff0e", "..", "::1",
        "a" * 70,
    ]
)  # fmt: skip


@given(st.lists(PARTS | st.text(max_size=5), max_size=8).map("".join))
def test_whatever_a_url_says_it_is_refused_in_a_sentence(url: str) -> None:
    using = tool("docs.example.org", look_up=looks_up("127.0.0.1"))

    async def one() -> None:
        with pytest.raises(ToolError):
            await get(using, url)

    trio.run(one)


async def test_a_host_that_is_not_there_is_told() -> None:
    unknown = tool("no-such-host.invalid", look_up=resolve)
    assert "has no address" in await refusal(unknown, "https://no-such-host.invalid/")
    assert "has no address" in await refusal(
        tool("a.example.org", look_up=looks_up()), "https://a.example.org/"
    )
    below = tool("*.example.org", look_up=resolve)
    for name in ("a" * 64, "a" * 70 + ".b", "a" * 250):
        assert "has no address" in await refusal(below, f"https://{name}.example.org/")
    async with serving({}) as server:
        closed = f"http://127.0.0.1:{server.port}"
    assert "it can't be got" in await refusal(tool(private=[closed]), closed)


@pytest.mark.parametrize(
    "text",
    ["", "*", "*.org", "ftp://a.org", "a.org/path", "a b", "https://u@a.org", "a:0", "a:99999"],
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(HostError):
        Host.parse(text)


@pytest.mark.parametrize(
    "text", ["docs.example.org", "*.example.org", "http://localhost:8000", "a.org:8443"]
)
def test_a_host_is_shown_as_it_is_written(text: str) -> None:
    assert str(Host.parse(text)) == text
    assert Host.parse(text.upper()) == Host.parse(text)


def test_https_is_what_is_meant() -> None:
    assert Host.parse("a.org").covers("https", "a.org", 443)
    assert not Host.parse("a.org").covers("http", "a.org", 80)
    assert Host.parse("*.a.org").covers("https", "x.y.a.org", 443)
    assert not Host.parse("*.a.org").covers("https", "a.org", 443)
