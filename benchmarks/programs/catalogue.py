"""The catalogue of programs to run: their repositories, arguments and data."""

from dataclasses import dataclass, field
from typing import Any

# Number of losses to compare: later ones differ more, because training amplifies rounding errors.
N_COMPARED = 3


@dataclass(frozen=True)
class Program:
    """One program of somebody else.

    Attributes
    ----------
    name
        Its name in the table.
    repository, commit
        Where it is published, and the version to run.
    path
        Its file in the repository.
    arguments
        Its command line.
    data
        The synthetic files that it gets, by their name in :mod:`benchmarks.programs.stand_ins`.
    steps
        Number of optimizer steps after which it is ended.
    parents
        Folders above its own from which it imports: 1 for the one that contains its own.
    options
        Options of ``virtual_gpu``.
    on_cpu
        Further arguments on the CPU, to choose that device.
    """

    name: str
    repository: str
    commit: str
    path: str
    arguments: tuple[str, ...] = ()
    data: str = ""
    steps: int = 6
    parents: tuple[int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    on_cpu: tuple[str, ...] = ()


# Fixed versions: a program whose verdict changes has not changed itself.
_COMMITS = {
    "pytorch/examples": "77f55b912142e11fcfdf5b530231fb9c52f181e8",
    "karpathy/nanoGPT": "3adf61e154c3fe3fca428ad6bc3818b27a3b8291",
    "karpathy/minGPT": "37baab71b9abea1b76ab957409a1cc2fbfba8a26",
    "karpathy/makemore": "988aa59e4d8fefa526d06f3b453ad116258398d4",
    "karpathy/ng-video-lecture": "52201428ed7b46804849dea0b3ccf0de9df1a5c3",
    "kuangliu/pytorch-cifar": "49b7aa97b0c12fe0d4054e670403a16b6b834ddd",
    "weiaicunzai/pytorch-cifar100": "11d8418f415b261e4ae3cb1ffe20d06ec95b98e4",
    "akamaster/pytorch_resnet_cifar10": "d5489e8995e81e91ce6b1d69dcc98ad579b0b153",
    "yunjey/pytorch-tutorial": "0500d3df5a2a8080ccfccbc00aca0eacc21818db",
    "eriklindernoren/PyTorch-GAN": "36d3c77e5ff20ebe0aeefd322326a134a279b93e",
    "locuslab/TCN": "2f8c2b817050206397458dfd1f5a25ce8a32fe65",
    "tkipf/pygcn": "1600b5b748b3976413d1e307540ccc62605b4d6d",
    "hunkim/PyTorchZeroToAll": "e5a260fac0b4ff1e2ec434fc6f0d962ac97fc289",
    "rtqichen/torchdiffeq": "657943acefa826ef04c025ebeb1ff5e9d60dc268",
    "milesial/Pytorch-UNet": "21d7850f2af30a9695bbeea75f3136aa538cfc4a",
    "stas00/ml-engineering": "744d01e18b79512572f64a6bbd8b5f4a725203a7",
    "gpu-mode/lectures": "7cb40f67ad68f59a7c13e9a8c4d8a816a3c68e7a",
    "pytorch/benchmark": "0e83c440a51cd63464fee34724d01b7c814ce39b",
}


def _p(name: str, repository: str, path: str, arguments: str, **options: Any) -> Program:  # noqa: ANN401 # fields of several types
    return Program(
        name, repository, _COMMITS[repository], path, tuple(arguments.split()), **options
    )


# The arguments make models and batches small, so that the virtual GPU computes values within its
# budget.
PROGRAMS = (
    _p("MNIST", "pytorch/examples", "mnist/main.py", "--epochs 1"),
    _p(
        "MNIST, forward-forward",
        "pytorch/examples",
        "mnist_forward_forward/main.py",
        "--epochs 2 --train_size 200 --test_size 100",
    ),
    _p("MNIST with an LSTM", "pytorch/examples", "mnist_rnn/main.py", "--epochs 1 --accel"),
    _p("MNIST, Hogwild", "pytorch/examples", "mnist_hogwild/main.py", "--epochs 1 --cuda"),
    _p("Variational autoencoder", "pytorch/examples", "vae/main.py", "--epochs 1"),
    _p(
        "DCGAN",
        "pytorch/examples",
        "dcgan/main.py",
        "--dataset fake --accel --niter 1 --imageSize 64 --ngf 8 --ndf 8 --batchSize 8 "
        "--workers 0",
    ),
    _p(
        "Word language model, LSTM",
        "pytorch/examples",
        "word_language_model/main.py",
        "--accel --epochs 1 --emsize 32 --nhid 32 --batch_size 8",
        data="corpus",
    ),
    _p(
        "Word language model, transformer",
        "pytorch/examples",
        "word_language_model/main.py",
        "--accel --epochs 1 --model Transformer --emsize 32 --nhid 32 --batch_size 8",
        data="corpus",
    ),
    _p(
        "Graph attention",
        "pytorch/examples",
        "gat/main.py",
        "--epochs 2 --num-heads 2",
        data="citations",
    ),
    _p(
        "Siamese network",
        "pytorch/examples",
        "siamese_network/main.py",
        "--epochs 1 --batch-size 16 --dry-run",
    ),
    _p(
        "ImageNet, ResNet-18",
        "pytorch/examples",
        "imagenet/main.py",
        "--dummy -a resnet18 -b 4 --epochs 1 -j 0 --gpu 0",
    ),
    _p(
        "ImageNet, DataParallel",
        "pytorch/examples",
        "imagenet/main.py",
        "--dummy -a resnet18 -b 4 --epochs 1 -j 0",
    ),
    _p(
        "DDP tutorial, one GPU",
        "pytorch/examples",
        "distributed/ddp-tutorial-series/single_gpu.py",
        "1 1 --batch_size 256",
    ),
    _p(
        "DDP tutorial, processes",
        "pytorch/examples",
        "distributed/ddp-tutorial-series/multigpu.py",
        "1 1",
    ),
    _p(
        "nanoGPT, training",
        "karpathy/nanoGPT",
        "train.py",
        "--eval_iters=2 --log_interval=1 --block_size=32 --batch_size=4 --n_layer=2 --n_head=2 "
        "--n_embd=32 --max_iters=5 --lr_decay_iters=5 --dropout=0.0 --dataset=shakespeare_char "
        "--gradient_accumulation_steps=2 --eval_interval=4 --wandb_log=False",
        data="tokens",
        on_cpu=("--device=cpu",),
    ),
    _p(
        "nanoGPT, bench.py",
        "karpathy/nanoGPT",
        "bench.py",
        "--batch_size=2 --block_size=64 --compile=False --real_data=False",
    ),
    _p(
        "minGPT, adder",
        "karpathy/minGPT",
        "projects/adder/adder.py",
        "--trainer.max_iters=5 --trainer.num_workers=0",
        parents=(2,),
    ),
    _p(
        "minGPT, chargpt",
        "karpathy/minGPT",
        "projects/chargpt/chargpt.py",
        "--trainer.max_iters=5 --model.model_type=gpt-nano --trainer.num_workers=0",
        data="text",
        parents=(2,),
    ),
    _p(
        "makemore, transformer",
        "karpathy/makemore",
        "makemore.py",
        "--device cuda --max-steps 12 --num-workers 0 -i names.txt",
        data="names",
        on_cpu=("--device", "cpu"),
    ),
    _p(
        "makemore, GRU",
        "karpathy/makemore",
        "makemore.py",
        "--device cuda --max-steps 12 --num-workers 0 -i names.txt --type gru",
        data="names",
        on_cpu=("--device", "cpu"),
    ),
    _p("Bigram from the video", "karpathy/ng-video-lecture", "bigram.py", "", data="text"),
    _p("CIFAR-10, SimpleDLA", "kuangliu/pytorch-cifar", "main.py", ""),
    _p(
        "CIFAR-100, MobileNet",
        "weiaicunzai/pytorch-cifar100",
        "train.py",
        "-net mobilenet -gpu -b 16",
    ),
    _p(
        "CIFAR-10, ResNet-20",
        "akamaster/pytorch_resnet_cifar10",
        "trainer.py",
        "--arch resnet20 --epochs 1 -b 32 -j 0",
    ),
    _p(
        "CIFAR-10, ResNet-20 in halves",
        "akamaster/pytorch_resnet_cifar10",
        "trainer.py",
        "--arch resnet20 --epochs 1 -b 32 -j 0 --half",
    ),
    _p(
        "Feedforward network",
        "yunjey/pytorch-tutorial",
        "tutorials/01-basics/feedforward_neural_network/main.py",
        "",
    ),
    _p(
        "Convolutional network",
        "yunjey/pytorch-tutorial",
        "tutorials/02-intermediate/convolutional_neural_network/main.py",
        "",
    ),
    _p(
        "Deep residual network",
        "yunjey/pytorch-tutorial",
        "tutorials/02-intermediate/deep_residual_network/main.py",
        "",
    ),
    _p(
        "Recurrent network",
        "yunjey/pytorch-tutorial",
        "tutorials/02-intermediate/recurrent_neural_network/main.py",
        "",
    ),
    _p(
        "Bidirectional network",
        "yunjey/pytorch-tutorial",
        "tutorials/02-intermediate/bidirectional_recurrent_neural_network/main.py",
        "",
    ),
    _p(
        "GAN",
        "yunjey/pytorch-tutorial",
        "tutorials/03-advanced/generative_adversarial_network/main.py",
        "",
    ),
    _p(
        "VAE",
        "yunjey/pytorch-tutorial",
        "tutorials/03-advanced/variational_autoencoder/main.py",
        "",
    ),
    _p(
        "Language model",
        "yunjey/pytorch-tutorial",
        "tutorials/02-intermediate/language_model/main.py",
        "",
        data="corpus",
    ),
    _p(
        "PyTorch-GAN, gan",
        "eriklindernoren/PyTorch-GAN",
        "implementations/gan/gan.py",
        "--n_epochs 1 --batch_size 16 --n_cpu 0",
    ),
    _p(
        "PyTorch-GAN, wgan_gp",
        "eriklindernoren/PyTorch-GAN",
        "implementations/wgan_gp/wgan_gp.py",
        "--n_epochs 1 --batch_size 16 --n_cpu 0",
    ),
    _p(
        "PyTorch-GAN, acgan",
        "eriklindernoren/PyTorch-GAN",
        "implementations/acgan/acgan.py",
        "--n_epochs 1 --batch_size 16 --n_cpu 0",
    ),
    _p(
        "PyTorch-GAN, infogan",
        "eriklindernoren/PyTorch-GAN",
        "implementations/infogan/infogan.py",
        "--n_epochs 1 --batch_size 16 --n_cpu 0",
    ),
    _p(
        "PyTorch-GAN, aae",
        "eriklindernoren/PyTorch-GAN",
        "implementations/aae/aae.py",
        "--n_epochs 1 --batch_size 16 --n_cpu 0",
    ),
    _p(
        "PyTorch-GAN, cgan",
        "eriklindernoren/PyTorch-GAN",
        "implementations/cgan/cgan.py",
        "--n_epochs 1 --batch_size 16 --n_cpu 0",
    ),
    _p(
        "PyTorch-GAN, dcgan",
        "eriklindernoren/PyTorch-GAN",
        "implementations/dcgan/dcgan.py",
        "--n_epochs 1 --batch_size 16 --n_cpu 0",
    ),
    _p(
        "PyTorch-GAN, softmax_gan",
        "eriklindernoren/PyTorch-GAN",
        "implementations/softmax_gan/softmax_gan.py",
        "--n_epochs 1 --batch_size 16 --n_cpu 0",
    ),
    _p(
        "PyTorch-GAN, wgan_div",
        "eriklindernoren/PyTorch-GAN",
        "implementations/wgan_div/wgan_div.py",
        "--n_epochs 1 --batch_size 16 --n_cpu 0",
    ),
    _p(
        "PyTorch-GAN, relativistic_gan",
        "eriklindernoren/PyTorch-GAN",
        "implementations/relativistic_gan/relativistic_gan.py",
        "--n_epochs 1 --batch_size 16 --n_cpu 0",
    ),
    _p(
        "TCN, adding problem",
        "locuslab/TCN",
        "TCN/adding_problem/add_test.py",
        "--epochs 1 --batch_size 8 --seq_len 40 --levels 3 --log-interval 5",
        parents=(1, 2),
    ),
    _p(
        "TCN, copying memory",
        "locuslab/TCN",
        "TCN/copy_memory/copymem_test.py",
        "--epochs 1 --batch_size 8 --blank_len 30 --levels 3",
        parents=(1, 2),
    ),
    _p(
        "TCN, MNIST by pixel",
        "locuslab/TCN",
        "TCN/mnist_pixel/pmnist_test.py",
        "--epochs 1 --batch_size 4 --levels 4",
        parents=(1, 2),
    ),
    _p(
        "Graph convolution, pygcn",
        "tkipf/pygcn",
        "pygcn/train.py",
        "--epochs 5 --dropout 0",
        data="citations",
        parents=(1,),
    ),
    _p("Softmax on MNIST", "hunkim/PyTorchZeroToAll", "09_2_softmax_mnist.py", ""),
    _p(
        "Neural ODE",
        "rtqichen/torchdiffeq",
        "examples/ode_demo.py",
        "--data_size 60 --batch_time 5 --batch_size 4 --niters 4 --test_freq 2",
        parents=(1,),
    ),
    _p(
        "U-Net with AMP",
        "milesial/Pytorch-UNet",
        "train.py",
        "--epochs 1 --batch-size 2 --amp --scale 0.5 -v 10",
        data="pictures",
    ),
    _p(
        "MAMF finder",
        "stas00/ml-engineering",
        "compute/accelerator/benchmarks/mamf-finder.py",
        "--m 1024 --n 1024 --k 1024 --output_file mm.txt",
    ),
    _p(
        "Pinned memory bench",
        "stas00/ml-engineering",
        "training/performance/benchmarks/dataloader/pin-memory-non-block-bench.py",
        "",
    ),
    _p(
        "SwiGLU bench",
        "stas00/ml-engineering",
        "training/performance/benchmarks/matrix-shape/swiglu-maf-bench.py",
        "",
    ),
    _p("GPU MODE, lecture 1", "gpu-mode/lectures", "lecture_001/pytorch_square.py", ""),
    _p("GPU MODE, profiler", "gpu-mode/lectures", "lecture_001/pt_profiler.py", ""),
    _p("GPU MODE, DDP", "gpu-mode/lectures", "lecture_017/ddp_simple.py", ""),
    _p(
        "TorchBench, lennard_jones",
        "pytorch/benchmark",
        "run.py",
        "lennard_jones -d cuda -t train",
    ),
    _p("TorchBench, dcgan", "pytorch/benchmark", "run.py", "dcgan -d cuda -t train --bs 4"),
    _p(
        "TorchBench, functorch_dp_cifar10",
        "pytorch/benchmark",
        "run.py",
        "functorch_dp_cifar10 -d cuda -t train --bs 2",
    ),
    _p(
        "TorchBench, pyhpc_equation_of_state",
        "pytorch/benchmark",
        "run.py",
        "pyhpc_equation_of_state -d cuda -t eval --bs 100",
    ),
    _p(
        "TorchBench, tts_angular",
        "pytorch/benchmark",
        "run.py",
        "tts_angular -d cuda -t train",
    ),
    _p(
        "TorchBench, pytorch_unet",
        "pytorch/benchmark",
        "run.py",
        "pytorch_unet -d cuda -t eval --bs 1",
    ),
    _p(
        "TorchBench, soft_actor_critic",
        "pytorch/benchmark",
        "run.py",
        "soft_actor_critic -d cuda -t train",
    ),
)

BY_NAME = {program.name: program for program in PROGRAMS}
