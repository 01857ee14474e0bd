"""Draw whole models of torchvision, transformers and timm by a seed, and make their steps."""

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from gpulab.device.work import Work

LIBRARIES = ("torchvision", "timm", "transformers")
_TORCHVISION = (
    *("alexnet", "convnext_tiny", "convnext_small", "densenet121", "densenet169"),
    *("efficientnet_b0", "efficientnet_b2", "efficientnet_v2_s", "googlenet", "inception_v3"),
    *("maxvit_t", "mnasnet1_0", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small"),
    *("regnet_x_1_6gf", "regnet_x_400mf", "regnet_y_3_2gf", "regnet_y_800mf"),
    *("resnet18", "resnet34", "resnet50", "resnet101", "resnext50_32x4d", "shufflenet_v2_x1_0"),
    *("squeezenet1_1", "swin_t", "swin_v2_t", "vgg11", "vgg16_bn", "vit_b_16", "vit_b_32"),
    "wide_resnet50_2",
)
_TIMM = (
    *(
        "beit_base_patch16_224",
        "botnet26t_256",
        "cait_xxs24_224",
        "coat_lite_mini",
        "convmixer_768_32",
    ),
    *("convit_tiny", "convnextv2_tiny", "crossvit_9_240", "cspresnet50", "cspdarknet53"),
    *("deit_tiny_patch16_224", "deit3_small_patch16_224", "dla34", "dpn68", "edgenext_small"),
    *("efficientformer_l1", "eva02_tiny_patch14_224", "fastvit_t8", "focalnet_tiny_srf"),
    *("gcvit_xxtiny", "ghostnet_100", "gmlp_s16_224", "hrnet_w18_small", "levit_128"),
    *("mixer_s16_224", "mobilevit_s", "mobilevitv2_100", "nfnet_l0", "nest_tiny"),
    *("pit_xs_224", "poolformer_s12", "pvt_v2_b0", "repvgg_b0", "res2net50_26w_4s"),
    *("resmlp_12_224", "resnest14d", "resnetv2_50", "rexnet_100", "seresnet50", "selecsls42b"),
    *("tiny_vit_5m_224", "tnt_s_patch16_224", "twins_svt_small", "vit_small_patch16_224"),
    *("visformer_tiny", "volo_d1_224", "xcit_nano_12_p16_224", "xception41"),
)
# These take images of one size.
_FIXED_SIZE = ("vit", "maxvit", "swin", "inception")
_DECODERS = ("gpt2", "llama", "opt", "gpt_neox", "qwen2", "mistral", "bloom")
_ENCODERS = ("bert", "roberta", "distilbert", "electra", "albert")
_SEQUENCES = ("t5", "bart", "whisper")
_TRANSFORMERS = (*_DECODERS, *_ENCODERS, *_SEQUENCES, "vit", "clip")
_STYLES = ("loop", "foreach", "fused")


@dataclass(frozen=True)
class Drawn:
    """A drawn program: a whole model, its sizes, and what a step does.

    Attributes
    ----------
    library, model
        Where the model comes from, and its name there.
    sizes
        Its random sizes.
    mode
        ``"forward"``, ``"training"`` or ``"generate"``.
    precision
        ``"float32"``, ``"float16"`` or ``"bfloat16"`` weights, or ``"amp"``.
    is_channels_last
        Whether images are in that layout.
    optimizer, style
        The optimizer's class, and how it goes through the parameters.
    is_clipped, has_average, has_checkpoints
        Whether gradients are clipped, a moving average of the weights is kept, and activations
        are computed twice.
    """

    library: str
    model: str
    sizes: dict[str, int]
    mode: str
    precision: str
    is_channels_last: bool
    optimizer: str
    style: str
    is_clipped: bool
    has_average: bool
    has_checkpoints: bool

    @property
    def name(self) -> str:
        """All of it in one line."""
        parts = [self.library, self.model, self.mode, self.precision]
        parts += [f"{key}={value}" for key, value in self.sizes.items()]
        if self.mode == "training":
            parts += [self.optimizer, self.style]
        flags = asdict(self)
        return " ".join(parts + [key for key, value in flags.items() if value is True])


def draw(seed: int, n: int) -> list[Drawn]:
    """Return ``n`` programs, in turns from each library.

    Examples
    --------
    >>> [drawn.library for drawn in draw(seed=1, n=3)]
    ['torchvision', 'timm', 'transformers']
    >>> draw(seed=1, n=3) == draw(seed=1, n=3)
    True
    """
    chance = random.Random(seed)  # noqa: S311 # anyone may know the draw
    return [_draw(chance, LIBRARIES[i % len(LIBRARIES)]) for i in range(n)]


def _draw(chance: random.Random, library: str) -> Drawn:
    names = {"torchvision": _TORCHVISION, "timm": _TIMM, "transformers": _TRANSFORMERS}[library]
    model = chance.choice(names)
    modes = ["forward", "training", "training"]
    if library == "transformers" and model in (*_DECODERS, "t5", "bart"):
        modes += ["generate", "generate"]
    mode = chance.choice(modes)
    # Weights in half precision are not trained: few programs do that.
    precisions = (
        ["float32", "amp"] if mode == "training" else ["float32", "amp", "bfloat16", "float16"]
    )
    is_images = library != "transformers"
    return Drawn(
        library,
        model,
        _image_sizes(chance, library, model) if is_images else _text_sizes(chance, mode),
        mode,
        chance.choice(precisions),
        is_images and chance.random() < 1 / 3,
        chance.choice(("SGD", "Adam", "AdamW")),
        chance.choice(_STYLES),
        chance.random() < 1 / 3,
        chance.random() < 1 / 4,
        not is_images and model in (*_DECODERS, *_ENCODERS) and chance.random() < 1 / 4,
    )


def _image_sizes(chance: random.Random, library: str, model: str) -> dict[str, int]:
    batch = round(2 ** chance.uniform(0, 5))
    side = chance.choice((128, 160, 192, 224, 256))
    if library == "timm" or model.startswith(_FIXED_SIZE):
        side = 0  # the model's own
    return {"batch": batch, "side": side}


def _text_sizes(chance: random.Random, mode: str) -> dict[str, int]:
    n_heads = chance.choice((4, 6, 8, 12))
    return {
        "batch": round(2 ** chance.uniform(0, 4)),
        "length": round(2 ** chance.uniform(5, 8.5))
        if mode != "generate"
        else chance.randint(8, 64),
        "layers": chance.randint(2, 8),
        "heads": n_heads,
        "width": n_heads * chance.choice((32, 64, 96)),
        "words": chance.choice((1000, 8000, 32000, 50257)),
        "new": chance.randint(4, 16),
    }


def step_of(drawn: Drawn) -> Work:
    """Return the step of a drawn program, on the GPU in use.

    Raises
    ------
    ImportError
        If its library is not installed.
    """
    with torch.device("cuda"):
        model, inputs, loss_of = (_images if drawn.library != "transformers" else _texts)(drawn)
    if drawn.precision in {"float16", "bfloat16"}:
        dtype = getattr(torch, drawn.precision)
        model = model.to(dtype)
        inputs = {
            key: value.to(dtype) if value.is_floating_point() else value
            for key, value in inputs.items()
        }
    if drawn.is_channels_last:
        model = model.to(memory_format=torch.channels_last)
        inputs["x"] = inputs["x"].contiguous(memory_format=torch.channels_last)
    model.train(drawn.mode == "training")
    if drawn.mode == "training":
        return _training(drawn, model, lambda: loss_of(model, inputs))
    if drawn.mode == "generate":
        n_new = drawn.sizes["new"]
        options = {"do_sample": False, "min_new_tokens": n_new, "max_new_tokens": n_new}
        return lambda: _autocast(drawn, lambda: model.generate(**inputs, **options))

    @torch.no_grad()
    def forward() -> None:
        _autocast(drawn, lambda: loss_of(model, inputs))

    return forward


def _autocast(drawn: Drawn, work: Callable[[], Any]) -> Any:  # noqa: ANN401 # any result
    with torch.autocast("cuda", dtype=torch.float16, enabled=drawn.precision == "amp"):
        return work()


def _training(drawn: Drawn, model: nn.Module, loss: Callable[[], torch.Tensor]) -> Work:
    parameters = [each for each in model.parameters() if each.requires_grad]
    options: dict[str, Any] = {"lr": 1e-4}
    options |= {"foreach": drawn.style == "foreach"} if drawn.style != "fused" else {"fused": True}
    if drawn.optimizer == "SGD":
        options["momentum"] = 0.9
    optimizer = getattr(torch.optim, drawn.optimizer)(parameters, **options)
    average = None
    if drawn.has_average:
        average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
    if drawn.has_checkpoints:
        model.gradient_checkpointing_enable()
    # The default scale overflows in the first steps of some models, which leaves the update out.
    scaler = torch.amp.GradScaler("cuda", init_scale=256.0, enabled=drawn.precision == "amp")

    def step() -> None:
        optimizer.zero_grad()
        scaler.scale(_autocast(drawn, loss)).backward()
        if drawn.is_clipped:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(parameters, 1.0)
        scaler.step(optimizer)
        scaler.update()
        if average is not None:
            average.update_parameters(model)

    return step


_Made = tuple[nn.Module, dict[str, torch.Tensor], Callable[..., Any]]


def _images(drawn: Drawn) -> _Made:
    side = drawn.sizes["side"]
    if drawn.library == "timm":
        import timm

        model = timm.create_model(drawn.model, pretrained=False, num_classes=100)
        side = model.default_cfg["input_size"][-1]
    else:
        from torchvision import models

        # Others than the default would print a warning.
        options = {"init_weights": False} if drawn.model in {"googlenet", "inception_v3"} else {}
        model = models.get_model(drawn.model, weights=None, num_classes=100, **options)
        side = side or (299 if drawn.model == "inception_v3" else 224)
    batch = drawn.sizes["batch"]
    x = torch.randn(batch, 3, side, side)
    y = torch.randint(100, (batch,))

    def loss_of(model: nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        out = model(inputs["x"])
        while isinstance(out, tuple | list):  # logits and those of heads aside
            out = out[0]
        return functional.cross_entropy(out.float(), inputs["y"])

    return model, {"x": x, "y": y}, loss_of


def _texts(drawn: Drawn) -> _Made:  # noqa: C901, PLR0912, PLR0915 # a case for each model
    import transformers

    size = drawn.sizes
    batch, length, words = size["batch"], size["length"], size["words"]
    usual = {
        "vocab_size": words,
        "hidden_size": size["width"],
        "num_hidden_layers": size["layers"],
        "num_attention_heads": size["heads"],
        "intermediate_size": 4 * size["width"],
        "max_position_embeddings": 1024,
        "pad_token_id": 0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    of_sequences = {
        "vocab_size": words,
        "d_model": size["width"],
        "encoder_layers": size["layers"],
        "decoder_layers": size["layers"],
        "encoder_attention_heads": size["heads"],
        "decoder_attention_heads": size["heads"],
        "encoder_ffn_dim": 4 * size["width"],
        "decoder_ffn_dim": 4 * size["width"],
        **{name: usual[name] for name in ("pad_token_id", "bos_token_id", "eos_token_id")},
    }
    special = {name: usual[name] for name in ("pad_token_id", "bos_token_id", "eos_token_id")}
    options: dict[str, Any] = usual
    if drawn.model == "gpt2":
        options = {"n_embd": size["width"], "n_layer": size["layers"], "n_head": size["heads"]}
        options |= {"vocab_size": words, "n_positions": 1024, **special}
    elif drawn.model == "opt":
        options = usual | {"ffn_dim": 4 * size["width"], "word_embed_proj_dim": size["width"]}
        options.pop("intermediate_size")
    elif drawn.model == "bloom":
        options = {"hidden_size": size["width"], "n_layer": size["layers"]}
        options |= {"n_head": size["heads"], "vocab_size": words, **special}
    elif drawn.model in {"llama", "qwen2", "mistral"}:
        options = usual | {"num_key_value_heads": size["heads"] // 2}
    elif drawn.model == "distilbert":
        options = {"dim": size["width"], "n_layers": size["layers"], "n_heads": size["heads"]}
        options |= {"hidden_dim": 4 * size["width"], "vocab_size": words, "pad_token_id": 0}
    elif drawn.model in {"electra", "albert"}:
        options = usual | {"embedding_size": 128}
    elif drawn.model == "t5":
        options = {"d_model": size["width"], "d_ff": 4 * size["width"], "vocab_size": words}
        options |= {"num_layers": size["layers"], "num_heads": size["heads"]}
        options |= {"d_kv": size["width"] // size["heads"], "decoder_start_token_id": 0}
        options |= {"pad_token_id": 0, "eos_token_id": 1}
    elif drawn.model == "bart":
        options = of_sequences | {"max_position_embeddings": 1024, "decoder_start_token_id": 2}
    elif drawn.model == "whisper":
        options = of_sequences | {"num_mel_bins": 80, "max_source_positions": 300}
        options |= {"decoder_start_token_id": 3}
    elif drawn.model == "vit":
        options = {key: usual[key] for key in list(usual)[1:5]}
    elif drawn.model == "clip":
        text = {key: usual[key] for key in list(usual)[:5]} | {"max_position_embeddings": 512}
        of_images = {key: usual[key] for key in list(usual)[1:5]}
        text |= special
        options = {"text_config": text, "vision_config": of_images, "projection_dim": 128}
    heads = {"vit": "ForImageClassification", "clip": "Model"}
    heads |= dict.fromkeys(_DECODERS, "ForCausalLM") | dict.fromkeys(_ENCODERS, "ForMaskedLM")
    heads |= dict.fromkeys(_SEQUENCES, "ForConditionalGeneration") | {"gpt2": "LMHeadModel"}
    stem = {
        "gpt2": "GPT2", "llama": "Llama", "opt": "OPT", "gpt_neox": "GPTNeoX", "qwen2": "Qwen2",
        "mistral": "Mistral", "bloom": "Bloom", "bert": "Bert", "roberta": "Roberta",
        "distilbert": "DistilBert", "electra": "Electra", "albert": "Albert", "t5": "T5",
        "bart": "Bart", "whisper": "Whisper", "vit": "ViT", "clip": "CLIP",
    }[drawn.model]  # fmt: skip
    config = getattr(transformers, stem + "Config")(**options)
    model = getattr(transformers, stem + heads[drawn.model])(config)
    ids = torch.randint(4, words, (batch, length))
    inputs = {"input_ids": ids}
    if drawn.mode == "generate":
        # Without it the values of the tokens are asked for padding.
        return model, inputs | {"attention_mask": torch.ones_like(ids)}, lambda: None
    if drawn.model == "vit":
        inputs = {"pixel_values": torch.randn(batch, 3, 224, 224), "labels": ids[:, 0] % 2}
    elif drawn.model == "clip":
        ids[:, -1] = 2
        inputs |= {"pixel_values": torch.randn(batch, 3, 224, 224)}
    elif drawn.model == "whisper":
        inputs = {"input_features": torch.randn(batch, 80, 600), "labels": ids[:, :256]}
    else:
        inputs["labels"] = ids
    options_of_loss = {"return_loss": True} if drawn.model == "clip" else {}

    def loss_of(model: nn.Module, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        loss: torch.Tensor = model(**inputs, **options_of_loss).loss
        return loss

    return model, inputs, loss_of
