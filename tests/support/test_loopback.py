"""Tests cannot reach other machines: other addresses are refused, loopback is open."""

import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import loopback

# Reserved for documentation: no machine has them.
ELSEWHERE = ("192.0.2.1", 80)
ELSEWHERE_V6 = ("2001:db8::1", 80, 0, 0)


def udp() -> None:
    """Send a datagram."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"", ELSEWHERE)


def connect(family: socket.AddressFamily, address: tuple[object, ...]) -> None:
    """Open a connection."""
    with socket.socket(family) as client:
        client.connect(address)


@pytest.mark.parametrize(
    ("reach", "what"),
    [
        (lambda: connect(socket.AF_INET, ELSEWHERE), f"socket.connect to {ELSEWHERE}"),
        (lambda: connect(socket.AF_INET6, ELSEWHERE_V6), f"socket.connect to {ELSEWHERE_V6}"),
        (udp, f"socket.sendto to {ELSEWHERE}"),
        (
            lambda: socket.create_connection(("example.invalid", 80)),
            "socket.getaddrinfo to 'example.invalid'",
        ),
        (
            lambda: socket.gethostbyname("example.invalid"),
            "socket.gethostbyname to 'example.invalid'",
        ),
    ],
)
def test_other_machines_are_refused_by_name(reach: Callable[[], object], what: str) -> None:
    """Nothing is sent; the message says what was tried and what a test may do instead."""
    with pytest.raises(loopback.LeavesTheMachineError) as error:
        reach()
    assert str(error.value) == (
        f"{what}; a test may connect to loopback and Unix sockets alone: give it an address of "
        "127.0.0.1, or a stand-in for what it wants from there"
    )
    assert loopback.attempts == [what]
    loopback.attempts.clear()


def test_a_refusal_that_is_swallowed_is_remembered() -> None:
    """A thread, or code that catches every error, cannot hide an attempt: it is recorded."""

    def hidden() -> None:
        with pytest.raises(loopback.LeavesTheMachineError):
            udp()

    thread = threading.Thread(target=hidden)
    thread.start()
    thread.join()
    assert loopback.attempts == [f"socket.sendto to {ELSEWHERE}"]
    loopback.attempts.clear()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_is_open(host: str) -> None:
    """A server of this machine can be reached by number and by name."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect(socket.AF_INET, (host, server.getsockname()[1]))


def test_unix_sockets_are_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The path of a Unix socket is not taken for another machine."""
    monkeypatch.chdir(tmp_path)  # a Unix socket's path must be short
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        server.bind("here")
        server.listen()
        client.connect("here")
