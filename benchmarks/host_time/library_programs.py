"""Programs of torchvision and transformers to which the host costs are fitted.

None of these models is among those that ``benchmarks.programs blind`` draws.
"""

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import torch
from torch.nn import functional

from benchmarks.host_time.networks import training
from gpulab.device.work import Work

_WORDS, _N_LAYERS = 1_000, 4
_USUAL = tuple(product(("forward", "training"), (_N_LAYERS,), (0,), ("float32", "amp")))
_GENERATED = (
    (2, 4, "float32"),
    (2, 12, "float32"),
    (6, 4, "float16"),
    (6, 12, "float32"),
    (4, 8, "amp"),
)
_DECODERS = ("Olmo", "Starcoder2", "StableLm")
_TEXTS = (*_DECODERS, "Ernie")
_IMAGES = ("regnet_x_800mf", "vgg11_bn", "shufflenet_v2_x1_5", "wide_resnet50_2")


def texts(stem: str, mode: str, n_layers: int, n_new: int, precision: str) -> Work:
    """Run, train or generate with a small language model of transformers."""
    import transformers

    config = getattr(transformers, stem + "Config")(
        hidden_size=256, num_hidden_layers=n_layers, num_attention_heads=8, num_key_value_heads=8,
        intermediate_size=1024, vocab_size=_WORDS, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    with torch.device("cuda"):
        head = "ForMaskedLM" if stem == "Ernie" else "ForCausalLM"
        model = getattr(transformers, stem + head)(config)
        ids = torch.randint(4, _WORDS, (2, 32))
        mask = torch.ones_like(ids)
    if mode == "generate":
        options = {"do_sample": False, "min_new_tokens": n_new, "max_new_tokens": n_new}
        return _step(
            model, lambda: model.generate(ids, attention_mask=mask, **options), mode, precision
        )
    return _step(model, lambda: model(input_ids=ids, labels=ids).loss, mode, precision)


def images(name: str, mode: str, _n_layers: int, _n_new: int, precision: str) -> Work:
    """Run or train a model of torchvision."""
    import torchvision

    with torch.device("cuda"):
        model = getattr(torchvision.models, name)()
        x, y = torch.randn(4, 3, 128, 128), torch.randint(1000, (4,))
    if precision == "float16":
        x = x.half()
    return _step(model, lambda: functional.cross_entropy(model(x), y), mode, precision)


def _step(model: Any, loss_of: Callable[[], Any], mode: str, precision: str) -> Work:  # noqa: ANN401 # a module of a library without types
    if precision == "float16":
        model.half()
    model.train(mode == "training")

    def cast() -> Any:  # noqa: ANN401 # as above
        with torch.autocast("cuda", dtype=torch.float16, enabled=precision == "amp"):
            return loss_of()

    if mode == "training":
        return training(torch.optim.AdamW(model.parameters(), lr=1e-4), cast)
    return torch.no_grad()(cast)


_CASES: tuple[tuple[Callable[..., Work], tuple[Any, ...]], ...] = (
    *((texts, (stem, "generate", *more)) for stem in _DECODERS for more in _GENERATED),
    *((texts, (stem, *more)) for stem in _TEXTS for more in _USUAL),
    *((images, (name, *more)) for name in _IMAGES for more in _USUAL),
    *((images, (name, "forward", _N_LAYERS, 0, "float16")) for name in _IMAGES[:2]),
    *((texts, (stem, "forward", _N_LAYERS, 0, "float16")) for stem in ("Olmo", "Ernie")),
)
PROGRAMS: dict[str, Callable[[], Work]] = {
    " ".join(map(str, sizes)): partial(make, *sizes) for make, sizes in _CASES
}
