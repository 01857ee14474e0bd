"""The HTML of an explorer's output: numbers, a script that draws them, and words without it."""

import json
from functools import cache
from typing import Any

from gpulab.core.markup import clean
from gpulab.figures import Figure, widgets


def page_html(name: str, mark: str, numbers: dict[str, Any], still: str | Figure) -> str:
    """Return HTML that shows an explorer, without kernel and network.

    Parameters
    ----------
    name
        ``"crossover"`` or ``"roofline"``.
    mark
        A text of its own for each explorer, by which script and widget find the element.
    numbers
        What the page shows.
    still
        Shown where no script runs, such as in a notebook that is not trusted.
    """
    # A "</script>" inside of a script would end it.
    data = json.dumps(numbers, separators=(",", ":")).replace("</", "<\\/")
    if isinstance(still, Figure):
        shown = str(still._repr_mimebundle_()["text/html"])
    else:
        shown = "".join(f"<p>{clean(line)}</p>" for line in still.splitlines())
    return (
        f'<div data-gpulab-explorer="{mark}">{shown}'
        f'<script type="application/json">{data}</script></div>'
        f"<script>(() => {{\nconst MARK = {json.dumps(mark)};\n{_script(name)}\n}})();</script>"
    )


@cache
def _script(name: str) -> str:
    return widgets.explorer_page(name).replace("</", "<\\/")


def merge(known: dict[str, Any], added: dict[str, Any]) -> None:
    """Add the entries of nested dicts to another one."""
    for name, value in added.items():
        if isinstance(value, dict) and isinstance(known.get(name), dict):
            merge(known[name], value)
        else:
            known[name] = value
