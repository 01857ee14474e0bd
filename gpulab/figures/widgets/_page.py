"""Pages that run by themselves in the HTML of an output, and the widget that adds the kernel."""

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpulab.figures.widgets._messages import ignore_state
from gpulab.figures.widgets._script import script

if TYPE_CHECKING:
    from anywidget import AnyWidget

_FOLDER = Path(__file__).parent


def page_html(name: str | Path, mark: str, numbers: dict[str, Any], still: str) -> str:
    """Return HTML that shows an explorer, timeline or axes to draw on, without kernel or network.

    ``name`` is that of an explorer, or the path of another page's script. By the ``mark``, another
    text for each output, script and widget find the element. Where no script runs, such as in a
    notebook that is not trusted, the HTML ``still`` is shown.
    """
    # A "</script>" inside of a script would end it, and "<!--<script>" would hide its end.
    data = json.dumps(numbers, separators=(",", ":")).replace("<", "\\u003c")
    return (
        f'<div data-gpulab-page="{mark}">{still}'
        f'<script type="application/json">{data}</script></div>'
        f"<script>(() => {{\nconst MARK = {json.dumps(mark)};\n"
        f"{_page_script(name)}\n}})();</script>"
    )


@cache
def _page_script(name: str | Path) -> str:
    path = name if isinstance(name, Path) else _FOLDER / name / "page.js"
    return script(path).replace("</", "<\\/")


@cache  # not at import: half of the package would wait for the widgets to load
def explorer_class(name: str) -> "type[AnyWidget]":
    """Return the class of the widget that connects an explorer with the kernel.

    Its trait ``mark`` is that of the explorer's HTML; empty if the widget shows the explorer
    itself. Everything else travels as messages; ``chart/explorer.js`` sends and receives them.
    """
    import anywidget
    import traitlets

    class ExplorerWidget(anywidget.AnyWidget):
        """An explorer's connection with the kernel."""

        set_state = ignore_state
        _esm: Any = script(_FOLDER / name / "widget.js")
        mark = traitlets.Unicode("").tag(sync=True)

    return ExplorerWidget
