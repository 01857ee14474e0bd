"""Choose the build of torch that works with this machine's driver and GPUs.

It imports nothing of gpulab, because ``make lab`` runs it as a program before anything is there.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

Capability = tuple[int, int]


@dataclass(frozen=True, slots=True)
class InstalledGpu:
    """A GPU as ``nvidia-smi`` lists it, which a MIG slice is not.

    An old driver does not know the capability, and a container may hide it.
    """

    driver: str
    capability: Capability | None

    @property
    def driver_major(self) -> int:
        """The first part of the driver's version, e.g. 580."""
        return int(self.driver.split(".", maxsplit=1)[0])

    def __str__(self) -> str:
        if self.capability is None:
            return f"driver {self.driver} and an unknown compute capability"
        return "driver {} and compute capability {}.{}".format(self.driver, *self.capability)


@dataclass(frozen=True, slots=True)
class Build:
    """A build of torch: the oldest driver, and the capabilities from the first up to the last."""

    name: str
    index: str
    oldest_driver: int
    first: Capability
    last: Capability

    def serves(self, gpu: InstalledGpu) -> bool:
        """Return whether the build runs on this GPU with its driver."""
        return gpu.driver_major >= self.oldest_driver and (
            gpu.capability is None or self.first <= gpu.capability <= self.last
        )


# PyTorch's table of releases, and NVIDIA's of drivers: CUDA 13 needs 580, CUDA 12 needs 525, and
# 570 is the first that knows Blackwell. The first build that serves a machine is taken. Torch 2.11
# is the last release with CUDA 12.8, and 2.14 the last with 12.6.
BUILDS = (
    Build("default", "cu130", 580, (7, 5), (12, 1)),
    Build("cu126", "cu126", 525, (5, 0), (9, 0)),
    Build("cu128", "cu128", 570, (7, 5), (12, 1)),
)
CPU = "cpu"


def choose(gpus: Sequence[InstalledGpu]) -> tuple[str, str]:
    """Return the name of the build that serves most of these GPUs, and why."""
    if not gpus:
        return CPU, "nvidia-smi lists no NVIDIA GPU"
    build = max(BUILDS, key=lambda each: sum(map(each.serves, gpus)))  # the first of equal ones
    served = [str(gpu) for gpu in gpus if build.serves(gpu)]
    others = [str(gpu) for gpu in gpus if not build.serves(gpu)]
    if not served:
        return CPU, f"no build with CUDA serves {_listed(others)}; {_advice(gpus)}"
    unserved = f", but not {_listed(others)}" if others else ""
    return build.name, f"it serves {_listed(served)}{unserved}"


def _listed(gpus: list[str]) -> str:
    return ", ".join(dict.fromkeys(gpus))


def _advice(gpus: Sequence[InstalledGpu]) -> str:
    newest = f"{BUILDS[0].oldest_driver}.0"
    updated = [InstalledGpu(newest, gpu.capability) for gpu in gpus]
    if any(build.serves(gpu) for build in BUILDS for gpu in updated):
        return f"update the NVIDIA driver to {BUILDS[0].oldest_driver} or newer"
    return "only a newer GPU can be timed"


def cure(gpus: Sequence[InstalledGpu], *, torch: str) -> str:
    """Return the line that installs the build for these GPUs, or what to do if there is none.

    ``torch`` has the versions to choose from, e.g. ``"torch>=2.11,<2.16"``.
    """
    name, reason = choose(gpus)
    for build in BUILDS:
        if build.name == name:
            # pip would take the same version of another build for the wanted one.
            return (
                f'pip install --force-reinstall "{torch}" '
                f"--index-url https://download.pytorch.org/whl/{build.index}"
            )
    return reason


def installed_gpus() -> list[InstalledGpu]:
    """Return the GPUs that ``nvidia-smi`` lists; none without a driver."""
    rows = _query("driver_version,compute_cap")
    # Drivers before 510 do not know the second field.
    # Other text than a version is a complaint, such as "No devices were found".
    return [_read(row) for row in rows or _query("driver_version") if row[:1].isdigit()]


def _query(fields: str) -> list[str]:
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 # no text of a user
    except OSError:
        return []
    return answer.stdout.splitlines() if answer.returncode == 0 else []


def _read(row: str) -> InstalledGpu:
    driver, _, capability = row.partition(",")
    major, _, minor = capability.strip().partition(".")
    has_capability = major.isdigit() and minor.isdigit()
    return InstalledGpu(driver.strip(), (int(major), int(minor)) if has_capability else None)


if __name__ == "__main__":
    sys.stdout.write(" ".join(choose(installed_gpus())) + "\n")
