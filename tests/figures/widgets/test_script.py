"""Each widget's script is a module that contains the shared script and colours."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gpulab import tracing
from gpulab.figures import widgets

ROOMS = {"timeline": tracing, "machine": widgets}
PATHS = [Path(room.__file__).with_name(f"{name}.js") for name, room in ROOMS.items()]  # type: ignore[arg-type]  # they have one

EXPLORERS = [PATHS[1].with_name(name) / "widget.js" for name in ("crossover", "roofline")]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_scripts_are_modules_with_a_render_function(tmp_path: Path) -> None:
    """Each script can be imported as a module and has a render function."""
    scripts = {f"script_{number}": path for number, path in enumerate([*PATHS, *EXPLORERS])}
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
    text = path.read_text("utf-8")
    assert "${LOOK}" in text
    assert "--jp-layout" not in text
    assert "--jp-ui-font-color" not in text
    hexes = [word for word in text.replace("(", " ").split() if word.startswith("#")]
    assert not [word for word in hexes if len(word.strip(";,)")) in {4, 7}]
