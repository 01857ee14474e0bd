"""Synthetic data in place of downloads: torchvision's data sets, text, pictures and graphs."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import torch

_N_SAMPLES = 200
# Data sets of torchvision: mode and size of their pictures, and number of classes.
_PICTURES = {
    "MNIST": ("L", 28, 10),
    "FashionMNIST": ("L", 28, 10),
    "CIFAR10": ("RGB", 32, 10),
    "CIFAR100": ("RGB", 32, 100),
}
# A global, because torch forgets the operators when the library object is deleted.
_library = torch.library.Library("torchvision", "FRAGMENT")
# minGPT continues the text "O God, O God!", so each of its letters must occur in the data.
_SENTENCE = (
    "the quick brown fox jumps over the lazy dog and asks : what is a stream ? O God, O God!\n"
)


def install() -> None:
    """Replace torchvision's data sets by synthetic ones, and loggers by silent mocks."""
    for name in ("wandb", "torch.utils.tensorboard"):
        sys.modules[name] = MagicMock()
    popen = os.popen  # some programs ask for the terminal's width, and there is no terminal
    os.popen = lambda command, *args: popen("echo 24 80" if "stty" in command else command, *args)
    # A torchvision of another build than torch's cannot register its operators in C++.
    with suppress(RuntimeError):
        for name in ("nms", "qnms"):
            _library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    try:
        from torchvision import datasets
    except ImportError:
        return
    for name, (mode, size, n_classes) in _PICTURES.items():
        setattr(datasets, name, _data_set(name, mode, size, n_classes))


def prepare(data: str) -> None:
    """Write the files that a program expects in its working directory."""
    Path("results").mkdir()
    if data:
        _WRITERS[data]()


def _data_set(name: str, mode: str, size: int, n_classes: int) -> type:
    from PIL import Image
    from torch.utils.data import Dataset

    shape = (size, size) if mode == "L" else (size, size, 3)

    class Pictures(Dataset[Any]):
        """Random pictures with random labels, the same in each run."""

        classes = tuple(str(number) for number in range(n_classes))

        def __init__(  # torchvision's signature
            self,
            root: object = None,
            train: bool = True,  # noqa: FBT001, FBT002 # as above
            transform: Callable[[Any], Any] | None = None,
            target_transform: Callable[[Any], Any] | None = None,
            download: bool = False,  # noqa: FBT001, FBT002 # as above
        ) -> None:
            del root, download
            # A fixed seed, because the losses on the virtual GPU are compared with those on the
            # CPU.
            draw = np.random.default_rng(int(train))
            self.data: Any = draw.integers(0, 256, (_N_SAMPLES, *shape), dtype=np.uint8)
            self.targets: Any = draw.integers(0, n_classes, _N_SAMPLES).tolist()
            if mode == "L":
                self.data = torch.from_numpy(self.data)
                self.targets = torch.tensor(self.targets)
            self.transform, self.target_transform = transform, target_transform

        def __len__(self) -> int:
            return len(self.data)

        def __getitem__(self, index: int) -> tuple[Any, int]:
            picture: Any = Image.fromarray(np.asarray(self.data[index]), mode)
            label = int(self.targets[index])
            if self.transform is not None:
                picture = self.transform(picture)
            if self.target_transform is not None:
                label = self.target_transform(label)
            return picture, label

    Pictures.__name__ = name
    return Pictures


def _write(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text, "utf-8")


def _input_text() -> None:
    _write("input.txt", _SENTENCE * 400)


def _names() -> None:
    words = [chr(97 + i % 26) + chr(97 + i * 7 % 26) + chr(97 + i * 11 % 26) for i in range(1200)]
    _write("names.txt", "\n".join(words))


def _corpus() -> None:
    for part in ("train", "valid", "test"):
        _write(f"data/wikitext-2/{part}.txt", _SENTENCE * 120)
    _write("data/train.txt", _SENTENCE * 160)


def _tokens() -> None:
    draw = np.random.default_rng(0)
    for folder in ("data/shakespeare_char", "data/openwebtext"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        for part in ("train", "val"):
            draw.integers(0, 60, 20_000, dtype=np.uint16).tofile(f"{folder}/{part}.bin")


def _pictures_and_masks() -> None:
    from PIL import Image

    draw = np.random.default_rng(0)
    for folder in ("data/imgs", "data/masks", "pictures/one"):
        Path(folder).mkdir(parents=True, exist_ok=True)
    for i in range(20):
        picture = draw.integers(0, 256, (64, 64, 3), dtype=np.uint8)
        Image.fromarray(picture).save(f"data/imgs/{i}.png")
        Image.fromarray(picture).save(f"pictures/one/{i}.png")
        mask = (draw.random((64, 64)) > 0.5).astype(np.uint8)  # noqa: PLR2004 # half of them
        Image.fromarray(mask).save(f"data/masks/{i}.png")


def _citations() -> None:
    """Write a small citation graph in the format of Cora."""
    draw = np.random.default_rng(0)
    n_papers, n_words = 1700, 64
    names = ("Neural_Networks", "Theory", "Genetic_Algorithms", "Case_Based")
    rows = [
        "\t".join(
            [
                str(i),
                *map(str, draw.integers(0, 2, n_words)),
                names[int(draw.integers(len(names)))],
            ]
        )
        for i in range(n_papers)
    ]
    links = [f"{a}\t{b}" for a, b in draw.integers(0, n_papers, (6000, 2))]
    # Each program looks in another place.
    for folder in ("../data/cora", "data/cora", "cora"):
        _write(f"{folder}/cora.content", "\n".join(rows) + "\n")
        _write(f"{folder}/cora.cites", "\n".join(links) + "\n")


_WRITERS = {
    "text": _input_text,
    "names": _names,
    "corpus": _corpus,
    "tokens": _tokens,
    "pictures": _pictures_and_masks,
    "citations": _citations,
}
