"""Pages that run by themselves in the HTML of an output."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from gpulab.figures.widgets._script import script

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
