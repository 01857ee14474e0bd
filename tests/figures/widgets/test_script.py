"""Each widget's script is a module that contains the shared script and colours."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from gpulab import tracing
from gpulab.core.palette import ROLES
from gpulab.figures import widgets
from gpulab.tracing import _spans

ROOMS = {"timeline": tracing, "machine": widgets}
ROOT = Path(__file__).parents[3]
LANES = ROOT / "gpulab" / "figures" / "widgets" / "lanes.js"
FORMATTED = [
    path
    for rule in json.loads((ROOT / "biome.json").read_text("utf-8"))["overrides"]
    for pattern in rule["includes"]
    for path in sorted(ROOT.glob(pattern))
]
PATHS = [Path(room.__file__).with_name(f"{name}.js") for name, room in ROOMS.items()]  # type: ignore[arg-type]  # they have one

EXPLORERS = [PATHS[1].with_name(name) / "widget.js" for name in ("crossover", "roofline")]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_scripts_are_modules_with_a_render_function(tmp_path: Path) -> None:
    """The script of each widget can be imported as a module and has a render function."""
    paths = [*PATHS[1:], *EXPLORERS]  # the timeline is no widget, but part of a page
    scripts = {f"script_{number}": path for number, path in enumerate(paths)}
    for name, path in scripts.items():
        (tmp_path / f"{name}.mjs").write_text(widgets.script(path), "utf-8")
    names = ", ".join(f"import('./{name}.mjs')" for name in scripts)
    code = (
        f"Promise.all([{names}]).then(all => all.map(m => console.log(typeof m.default.render)))"
    )
    command = ["node", "--no-warnings", "-e", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.split() == ["function"] * len(scripts)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_no_widget_has_colours_of_its_own(path: Path) -> None:
    """A widget's script sets no colour itself: those of the palette follow the theme."""
    look, colours, *own = widgets.script(path).splitlines()
    assert look.startswith("const LOOK = ")
    assert colours.startswith("const COLOURS = ")
    text = "\n".join(own)
    assert "LOOK" in text
    assert "--jp-layout" not in text
    assert "--jp-ui-font-color" not in text
    assert re.findall(r"#(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})\b(?!-)", text) == []


def test_lanes_have_the_hatches_of_the_palette() -> None:
    """The hatch of each role on a lane is the one that matplotlib draws."""
    text = LANES.read_text("utf-8")
    (table,) = re.findall(r"^const HATCHES = \{(.*)\};$", text, re.MULTILINE)
    hatches = dict(re.findall(r'(\w+): "([^"]+)"', table.replace("\\\\", "\\")))
    assert hatches == {kind: ROLES[kind].hatch for kind in _spans.SPAN_KINDS if ROLES[kind].hatch}


@pytest.mark.parametrize("path", FORMATTED, ids=lambda path: path.stem)
def test_lines_of_scripts_fit_a_screen(path: Path) -> None:
    """No line is longer than the formatter allows; it runs before a commit."""
    width = json.loads((ROOT / "biome.json").read_text("utf-8"))["formatter"]["lineWidth"]
    lines = path.read_text("utf-8").splitlines()
    assert [number for number, line in enumerate(lines, start=1) if len(line) > width] == []
