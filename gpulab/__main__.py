"""``python -m gpulab`` is the same as the ``gpulab`` command."""

from gpulab.cli import main

if __name__ == "__main__":
    main()
