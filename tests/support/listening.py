"""Find the ports on which a process and its children listen."""

import ipaddress
from dataclasses import dataclass
from socket import SOCK_DGRAM
from typing import Any

import psutil


@dataclass(frozen=True, slots=True)
class Port:
    """One port, and the command that opened it."""

    command: str
    address: str
    number: int

    @property
    def is_on_loopback(self) -> bool:
        """Whether other machines cannot reach it."""
        return ipaddress.ip_address(self.address).is_loopback


def connections_of(process: psutil.Process) -> list[Any]:
    """Return the connections of a process; psutil 6 renamed the method."""
    method = getattr(process, "net_connections", None) or process.connections
    return list(method("inet"))


def ports_of(process: psutil.Process) -> list[Port]:
    """Return all ports on which a process and its children listen now."""
    found = []
    for each in [process, *process.children(recursive=True)]:
        try:
            command, connections = " ".join(each.cmdline()), connections_of(each)
        except psutil.NoSuchProcess:  # it has ended meanwhile
            continue
        found += [
            Port(command, connection.laddr.ip, connection.laddr.port)
            for connection in connections
            if connection.status == psutil.CONN_LISTEN or connection.type == SOCK_DGRAM
        ]
    return found
