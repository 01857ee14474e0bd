"""The import direction is a rule, and so is a light front door; both are tests."""

import ast
import graphlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gpulab

PACKAGE = Path(__file__).parents[1] / "gpulab"

# Each family imports only from rows above its own. A family is a module, with its private
# helpers, or a package; inside a family any order without a circle will do.
ROWS = [
    ["errors", "version"],
    ["units"],
    ["stats", "gpus"],
    ["roofs"],
    ["measurement"],
    ["virtual core"],
    ["virtual"],
    ["device", "clocks"],
    ["saturation"],
    ["records"],
    ["timing"],
    ["floor"],
    ["findings", "warmup", "ordering"],
    ["timeline"],
    ["measuring"],
    ["comparing"],
    ["climbing", "workloads"],
    ["sweeping"],
    ["recordings"],
    ["roofline", "crossing"],
    ["surveying"],
    ["plots"],
    ["live", "explorers"],
    ["exercises", "magic"],
    ["lessons"],
    ["cli"],
]
FAMILIES = {
    "sweeping": [
        *["tasks", "sweeping", "cluster", "_sweep_book", "_sweep_copies", "_sweep_cpu"],
        *["_sweep_file", "_sweep_machine", "_sweep_run", "_sweep_take", "_sweep_turns"],
    ],
    "recordings": ["recordings", "_recordings_compare", "_recordings_file"],
    "roofline": [
        *["roofline", "_roofline_ceilings", "_roofline_measured", "_roofline_predict"],
        *["_roofline_refined", "_roofline_table"],
    ],
    "crossing": [
        *["crossing", "_crossing_curve", "_crossing_fit", "_crossing_link", "_crossing_points"],
        *["_crossing_host", "_crossing_where"],
    ],
    "surveying": [
        *["surveying", "_survey_clocks", "_survey_command", "_survey_first_use", "_survey_log"],
        *["_survey_plan", "_survey_points", "_survey_reading", "_survey_streams"],
        "_survey_transfers",
    ],
    "live": ["live", "_live_run", "_live_screen", "_live_stop"],
    "explorers": [
        *["explorers", "_explorer_controls", "_explorer_crossover", "_explorer_curves"],
        *["_explorer_frame", "_explorer_job", "_explorer_kernel", "_explorer_legend"],
        *["_explorer_listing", "_explorer_pace", "_explorer_panel", "_explorer_picture"],
        *["_explorer_roofline", "_explorer_scene", "_explorer_shell", "_explorer_sources"],
        *["_explorer_table", "_explorer_take"],
    ],
    "version": ["_lazy", "_version"],
    "measurement": [
        *["_conditions", "_distribution", "_markup", "_measurement_html", "_schema", "_sources"],
        *["_span", "_spans", "_timeline_gaps", "_timeline_layout", "_timeline_links"],
        *["_timeline_summary", "_timeline_trace", "measurement"],
    ],
    "device": ["device", "_doctor"],
    "clocks": [
        *["clocks", "_clocks_lock", "_clocks_nvml", "_clocks_reading", "_clocks_regime"],
        "_clocks_watchdog",
    ],
    "records": [
        *["records", "_records_detach", "_records_kineto", "_records_record"],
        *["_records_stderr", "_records_virtual"],
    ],
    "floor": ["floor", "_floor_found", "_floor_timer", "_floor_work"],
    "saturation": ["saturation", "_events"],
    "timing": ["timing", "flush", "guard", "referee", "replay"],
    "findings": ["findings", "_doubts_run", "_doubts_samples", "_facts"],
    "ordering": [
        *["_ordering_calls", "_ordering_memory", "_ordering_operators", "_ordering_real"],
        "ordering",
    ],
    "timeline": [
        *["recorder", "tracing", "_timeline_memory", "_timeline_notes", "_timeline_records"],
        *["_timeline_streams", "_timeline_watch"],
    ],
    "workloads": [
        *["workloads", "_workloads_problem", "_workloads_products", "_workloads_elementwise"],
        *["_workloads_rows", "_workloads_indexed"],
    ],
    "measuring": ["measuring", "_outcome", "_plan", "_progress", "_sampling"],
    "plots": [
        *["plots", "_axes", "_figure", "crossover_figure", "ladder_figure", "live_figure"],
        *["roofline_figure", "timeline_figure", "timeline_view", "_live_records"],
        "_timeline_drawing",
    ],
    "magic": ["magic", "_magic_compile", "_magic_guard", "_magic_options", "_magic_run"],
    "lessons": ["lessons", "_notebook_build"],
}
# Torch-free and clock-free, so that the model of the GPU is arithmetic and nothing else.
FORBIDDEN_IN_CORE = {"torch", "time", "asyncio"}
HEAVY = {"torch", "matplotlib", "ipywidgets", "IPython", "pandas", "numpy", "scipy"}
MAX_IMPORT_MS = 50


def family_of(module: str) -> str | None:
    """Return the family of a module: the listed one, its package's, or its own."""
    for family, modules in FAMILIES.items():
        if module in modules:
            return family
    if module == "virtual.core" or module.startswith("virtual.core."):
        return "virtual core"
    head = module.partition(".")[0]
    return head if any(head in row for row in ROWS) else None


def row_of(module: str) -> int:
    """Return the row of a module's family."""
    family = family_of(module)
    return next(index for index, row in enumerate(ROWS) if family in row)


def modules() -> dict[str, Path]:
    """Return every module of the package but its front door, by its name below ``gpulab``."""
    names = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        names[".".join(part for part in parts if part != "__init__")] = path
    names.pop("")
    return names


def imports_of(path: Path) -> list[tuple[int, str]]:
    """Return line and full name of each import, those inside functions included."""
    found = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the import with its full name"
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return sorted(found)


def siblings_of(path: Path) -> list[tuple[int, str]]:
    """Return line and module for each import from the package itself."""
    known, found = modules(), []
    for line, full_name in imports_of(path):
        head, _, name = full_name.partition(".")
        if head == "gpulab":
            # "from a.b import c" names the module a.b.c, or else the name c of the module a.b.
            owner = name if name in known else name.rpartition(".")[0]
            found.append((line, owner))
    return found


def test_every_module_has_a_row() -> None:
    """A new file must be given its place in ROWS, or in a family of one of them."""
    homeless = [f"{path}:1" for name, path in modules().items() if family_of(name) is None]
    assert not homeless, f"give these a row in {__file__}: {homeless}"


def test_every_family_has_a_row() -> None:
    """The table agrees with itself: no family without a row, no module or family twice."""
    families = [family for row in ROWS for family in row]
    members = [module for family in FAMILIES.values() for module in family]
    assert len(families) == len(set(families))
    assert len(members) == len(set(members))
    assert set(FAMILIES) <= set(families)


@pytest.mark.parametrize("module", modules())
def test_modules_import_only_from_rows_above(module: str) -> None:
    """A module may import its own family and families of higher rows, nothing else of ours."""
    path = modules()[module]
    wrong = [
        f"{path}:{line}: {module} imports {sibling or 'the front door'}"
        for line, sibling in siblings_of(path)
        if not sibling
        or (family_of(sibling) != family_of(module) and row_of(sibling) >= row_of(module))
    ]
    assert not wrong, "\n".join(wrong)


def test_modules_import_in_no_circle() -> None:
    """Not even inside a family, and not even inside functions or for types alone."""
    graph = {
        name: {sibling for _, sibling in siblings_of(path)} - {name}
        for name, path in modules().items()
        if not path.name.startswith("__init__")
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


@pytest.mark.parametrize(
    "module", [name for name in modules() if family_of(name) == "virtual core"]
)
def test_core_of_the_virtual_gpu_is_arithmetic(module: str) -> None:
    """The model knows no torch and no real clock, so it cannot wait for either."""
    path = modules().get(module)
    wrong = [
        f"{path}:{line}: imports {name}"
        for line, name in (imports_of(path) if path else [])
        if name.partition(".")[0] in FORBIDDEN_IN_CORE
    ]
    assert not wrong, "\n".join(wrong)


def run_python(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run code in a Python of its own, where nothing has been imported yet."""
    command = [sys.executable, *options, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("module", ["gpulab", "gpulab.cli", "gpulab.lessons"])
def test_import_is_light(module: str) -> None:
    """Neither the front door nor the command waits for a heavy package."""
    names = run_python(f"import {module}, sys; print(*sys.modules)").stdout.split()
    assert HEAVY.isdisjoint(names), f"import {module} loads {sorted(HEAVY & set(names))}"


def test_import_takes_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    """The best of five processes imports the front door within 50 ms, all it loads included."""
    times_us = []
    for _ in range(5):
        report = run_python("import gpulab", "-X", "importtime").stderr
        (cumulative_us,) = re.findall(r"\|\s*(\d+) \| +gpulab$", report, re.MULTILINE)
        times_us.append(int(cumulative_us))
    with capsys.disabled():
        print(f"\nimport gpulab: {min(times_us) / 1000:.1f} ms, best of five")  # noqa: T201 # a figure to watch
    assert min(times_us) < MAX_IMPORT_MS * 1000


def test_public_names_are_sorted() -> None:
    """The list of names reads like an index, and ``dir`` shows nothing else."""
    assert gpulab.__all__ == sorted(gpulab.__all__)
    assert dir(gpulab) == gpulab.__all__


@pytest.mark.parametrize("imported", [[], sorted(modules())], ids=["first use", "all imported"])
def test_public_names_resolve(imported: list[str]) -> None:
    """Each name is found, and importing a module of the same name does not hide it."""
    code = (
        "import gpulab, importlib\n"
        f"for name in {imported}: importlib.import_module('gpulab.' + name)\n"
        "for name in gpulab.__all__: print('@', name, type(getattr(gpulab, name)).__name__)"
    )
    lines = run_python(code).stdout.splitlines()
    kinds = dict(line.split()[1:] for line in lines if line.startswith("@"))
    assert sorted(kinds) == gpulab.__all__
    modules = {name for name, home in gpulab._HOMES.items() if home == f"gpulab.{name}"}
    hidden = [name for name, kind in kinds.items() if kind == "module" and name not in modules]
    assert not hidden, f"these public names are hidden by modules of the same name: {hidden}"


def test_unknown_name_is_an_attribute_error() -> None:
    """A misspelt name fails as on any module."""
    with pytest.raises(AttributeError) as error:
        gpulab.mesure  # noqa: B018 # reading it is the test
    assert str(error.value) == "module 'gpulab' has no attribute 'mesure'"
