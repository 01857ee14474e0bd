"""The progress bar: silent for a second, then text on stderr that is wiped at the end."""

from types import SimpleNamespace

import pytest

from gpulab.core import progress
from gpulab.core.progress import Bar


def test_progress_appears_after_a_second_and_leaves_no_trace(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bar is text on stderr that is wiped at the end, and it starts no thread."""
    now_s = 0.0
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now_s))
    with Bar(total=40, desc="measuring", unit=" samples", disable=False) as bar:
        now_s = 0.99
        bar.update(10)
        assert capsys.readouterr().err == ""
        now_s = 1.01
        bar.update(10)
        shown = capsys.readouterr().err
    assert "measuring:  50%" in shown
    assert "20/40" in shown
    assert capsys.readouterr().err.strip() == ""
    assert bar.monitor is None


def test_a_notebook_shows_the_bar_in_an_output_that_ends_empty(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a kernel the bar is one output, replaced until it is empty; stderr stays empty."""
    pages: list[str] = []

    class Handle:
        def update(self, page: dict[str, str], **_: object) -> None:
            pages.append(page["text/html"])

    def display(page: dict[str, str], **_: object) -> Handle:
        pages.append(page["text/html"])
        return Handle()

    now_s = 0.0
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr(progress, "jupyter_kernel", object)
    monkeypatch.setattr("IPython.display.display", display)
    with Bar(total=40, desc="measuring", unit=" samples", disable=False) as bar:
        now_s = 0.5
        bar.update(10)
        assert pages == []
        now_s = 1.5
        bar.update(10)
        assert "20/40" in pages[0]
    assert pages[-1] == ""
    assert capsys.readouterr().err == ""
