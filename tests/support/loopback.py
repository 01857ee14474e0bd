"""Refuse every connection of this process to another machine, and record the attempts.

An audit hook sees all sockets that Python opens, in asyncio, threads and forks, too. It does not
see new programs, such as a browser or another Python, or libraries that open sockets in C, such as
ZeroMQ.
"""

import ipaddress
import socket
import sys

attempts: list[str] = []
_THIS_MACHINE = {"", "localhost", socket.gethostname()}
_CONNECTS = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_LOOKS_UP = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})


class LeavesTheMachineError(RuntimeError):
    """A test tries to reach another machine; not an OSError, which programs may catch."""


def refuse_others() -> None:
    """Allow this process only loopback and Unix sockets, until it ends."""
    sys.addaudithook(_look)


def _look(
    event: str,
    arguments: tuple[object, ...],
    # Here, because Python clears the module at its end, and goes on to call this.
    connects: frozenset[str] = _CONNECTS,
    looks_up: frozenset[str] = _LOOKS_UP,
) -> None:
    """Raise if the event is a connection, or a look-up of a name, that leaves the machine."""
    if event in connects:
        address = arguments[1]
        host = address[0] if isinstance(address, tuple) else None  # Unix: a path, not a pair
    elif event in looks_up:
        address = host = arguments[0]
    else:
        return
    if _is_elsewhere(host):
        attempts.append(f"{event} to {address!r}")
        raise LeavesTheMachineError(
            f"{attempts[-1]}; a test may connect to loopback and Unix sockets alone: give it an "
            "address of 127.0.0.1, or a stand-in for what it wants from there"
        )


def _is_elsewhere(host: object) -> bool:
    """Return whether a host is another machine; None means all addresses of this one."""
    if host is None:
        return False
    name = host.decode() if isinstance(host, bytes) else str(host)
    if name in _THIS_MACHINE:
        return False
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return True
    return not (address.is_loopback or address.is_unspecified)
