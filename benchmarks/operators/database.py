"""PyTorch's own database of operators and their inputs; it needs the package expecttest."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch.testing._internal.opinfo.core import OpInfo


def full_name(info: "OpInfo") -> str:
    """Return an operator's name with that of its variant."""
    return f"{info.name}.{info.variant_test_name}" if info.variant_test_name else str(info.name)


def operators(names: Sequence[str] = ()) -> list["OpInfo"]:
    """Return the entries of the operators with these names, or of all.

    The first call imports the database, which changes settings of PyTorch for good.
    """
    from torch.testing._internal import common_utils
    from torch.testing._internal.common_methods_invocations import op_db
    from torch.testing._internal.opinfo import core

    # It looks through the stack for a test to name, at each list of samples: 0.1 s, and no test.
    common_utils.extract_test_fn = core.extract_test_fn = lambda: None  # type: ignore[attr-defined] # not in the stubs
    # It sets the seed before each sample. PyTorch notes that, with the stack of the call as text,
    # for each kind of device that nobody uses: a third of the time.
    unused = [torch.xpu, torch.mtia, *([] if torch.cuda.is_available() else [torch.cuda])]
    for device in unused:
        device.manual_seed_all = lambda _seed: None  # type: ignore[attr-defined,assignment] # there is none
    return [info for info in op_db if not names or info.name in names]
