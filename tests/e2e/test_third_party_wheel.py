"""A third party's plugin as a wheel in a fresh environment, with first-party parts; then broken ones beside it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import textwrap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

SOURCES = Path(__file__).with_name("third_party")
RUN = """
    problem: {use: ripple.bowl, n: 4, penalty: 0.1}
    oracles: {valley: {use: ripple.central, width: 1e-4}}
    solver: {use: splitting.proximal_gradient, step: auto}
    stopping: "max_iter(500) | ripple.below(LEVEL, times=4)"
    seed: 7
"""


def solution(n: int = 4, penalty: float = 0.1) -> tuple[np.ndarray, float]:
    """The bowl's minimizer, in closed form."""
    curvature, center = np.linspace(1.0, 2.0, n), np.linspace(-1.0, 1.0, n)
    x = np.sign(center) * np.maximum(np.abs(center) - penalty / curvature, 0)
    return x, float(0.5 * curvature @ (x - center) ** 2 + penalty * np.abs(x).sum())


@dataclass
class Environment:
    """A virtual environment that also sees the packages of the running interpreter."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, *wheels: Path) -> Environment:
        made = cls(folder)
        run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        # addsitedir, unlike a plain path, also follows the .pth files of editable installs.
        shared = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
        lines = [f"import site; site.addsitedir({path!r})" for path in sorted(shared)]
        (made.site_packages / "shared.pth").write_text("\n".join(lines) + "\n")
        run(
            [
                sys.executable,
                "-m",
                "pip",
                "--python",
                str(made.python),
                "install",
                "--quiet",
                "--no-index",
                "--no-deps",
                "--disable-pip-version-check",
                *map(str, wheels),
            ]
        )
        return made

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        return next((self.folder / "lib").glob("python*/site-packages"))

    def add_metadata(self, name: str, plugin: str, module: str, requires: str = "infimum") -> None:
        """Metadata of a distribution without code of its own."""
        info = self.site_packages / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\nRequires-Dist: {requires}\n"
        )
        (info / "entry_points.txt").write_text(f"[infimum]\n{plugin} = {module}\n")

    def infimum(self, *arguments: str, cwd: Path, code: int = 0) -> subprocess.CompletedProcess[str]:
        return run([str(self.python), "-m", "infimum", *arguments], cwd=cwd, code=code)


def run(command: list[str], cwd: Path | None = None, code: int = 0) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd or "/"), "OPENBLAS_NUM_THREADS": "1", "COLUMNS": "200"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == code, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def build_wheel(name: str, workspace: Path) -> Path:
    source = workspace / name
    shutil.copytree(SOURCES / name, source, ignore=shutil.ignore_patterns("__pycache__"))
    run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(workspace / "dist"), str(source)])
    (wheel,) = (workspace / "dist").glob(f"acme_{name}-*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build_wheel("ripple", tmp_path_factory.mktemp("ripple"))


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> Environment:
    return Environment.make(tmp_path_factory.mktemp("good") / "venv", wheel)


@pytest.fixture(scope="module")
def crowded(wheel, tmp_path_factory) -> Environment:
    """The good plugin among one that crashes, one for a later host, and one that takes a name that is taken."""
    workspace = tmp_path_factory.mktemp("crowded")
    made = Environment.make(workspace / "venv", wheel, build_wheel("crash", workspace))
    made.add_metadata("acme-future", "future", "acme_future", requires="infimum>=99")
    made.add_metadata("acme-zeroth", "zeroth", "acme_zeroth")
    made.add_metadata("zz-ripple", "ripple", "zz_ripple")
    return made


@pytest.fixture
def run_file(tmp_path) -> Path:
    file = tmp_path / "bowl.yaml"
    file.write_text(textwrap.dedent(RUN).replace("LEVEL", repr(solution()[1] + 1e-9)))
    return file


def solve_and_check(environment: Environment, run_file: Path) -> None:
    done = environment.infimum("run", run_file.name, "--json", "--output", "out", cwd=run_file.parent)
    result = json.loads(done.stdout)
    assert result["status"] == "target_reached"
    assert "4 times in a row" in result["message"]
    assert result["exactness"] == "approximate"
    assert result["value"] == pytest.approx(solution()[1], abs=1e-8)
    # Central differences take 2 n values for each gradient.
    assert result["evaluations"]["valley"]["value"] == 8 * result["calls"]["smooth"]["gradient"]
    assert "ripple saw" in " ".join(result["notes"])


def test_the_wheel_is_seen(environment, tmp_path):
    listed = environment.infimum("list", cwd=tmp_path).stdout
    for name in ("ripple.central", "ripple.bowl", "ripple.below", "splitting.proximal_gradient", "core.max_iter"):
        assert name in listed
    plugins = json.loads(environment.infimum("plugins", "--json", cwd=tmp_path).stdout)["plugins"]
    ripple = next(one for one in plugins if one["name"] == "ripple")
    assert (ripple["status"], ripple["distribution"], ripple["version"]) == ("active", "acme-ripple", "1.2.0")
    assert (
        str(environment.site_packages)
        in run([str(environment.python), "-c", "import acme_ripple; print(acme_ripple.__file__)"], cwd=tmp_path).stdout
    )


def test_run_together_with_first_party_parts(environment, run_file):
    solve_and_check(environment, run_file)
    environment.infimum("--strict-plugins", "check", run_file.name, cwd=run_file.parent)


def test_info_shows_the_options(environment, tmp_path):
    shown = environment.infimum("info", "ripple.central", cwd=tmp_path).stdout
    assert "width" in shown
    assert "Half the distance between the two points." in shown


def test_from_python(environment, tmp_path):
    x, value = solution()
    script = textwrap.dedent(f"""
        import json
        import infimum
        from acme_ripple import Below, Central, bowl
        result = infimum.solve(
            bowl(), solver="splitting.proximal_gradient", oracles={{"valley": Central(width=1e-4)}},
            stopping=Below({value + 1e-9!r}), seed=7,
        )
        by_name = infimum.solve(
            "ripple.bowl", solver="proximal_gradient", oracles={{"valley": "ripple.central"}},
            stopping="max_iter(50)", seed=7,
        )
        print(json.dumps([str(result.status), result.x.tolist(), by_name.x.tolist()]))
    """)
    status, found, by_name = json.loads(run([str(environment.python), "-c", script], cwd=tmp_path).stdout)
    assert status == "target_reached"
    np.testing.assert_allclose(found, x, atol=1e-4)
    np.testing.assert_allclose(by_name, x, atol=1e-4)


def test_mistakes_are_named(environment, tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(
        "problem: {use: ripple.bowl, n: 0}\n"
        "oracles: {valley: {use: ripple.central, widht: 1}}\n"
        "solver: {use: splitting.proximal_gradient}\n"
        'stopping: "ripple.blow(1)"\n'
    )
    said = environment.infimum("check", file.name, cwd=tmp_path, code=2).stderr
    assert "bad.yaml:1:32" in said
    assert "option 'n': expected an integer >= 1, got int 0" in said
    assert "oracle ripple.central has no option 'widht'; did you mean 'width'?" in said
    assert "no stopping rule called 'ripple.blow'; did you mean 'ripple.below'?" in said


def test_broken_neighbors_change_nothing(crowded, run_file):
    solve_and_check(crowded, run_file)


def test_plugins_says_why(crowded, tmp_path):
    found = json.loads(crowded.infimum("plugins", "--json", cwd=tmp_path).stdout)["plugins"]
    by_distribution = {one["distribution"]: one for one in found}
    expected = {
        "acme-crash": ("failed", "SystemExit: acme_crash wants a license key"),
        "acme-future": ("incompatible", "needs infimum >=99"),
        "infimum-zeroth": ("shadowed", "distributions acme-zeroth and infimum-zeroth both"),
        "acme-ripple": ("active", ""),
        "zz-ripple": ("shadowed", "distributions acme-ripple and zz-ripple both have a plugin called 'ripple'"),
        "infimum-splitting": ("active", ""),
    }
    for name, (status, reason) in expected.items():
        assert by_distribution[name]["status"] == status, name
        assert reason in by_distribution[name]["reason"], name
    assert "acme_crash.py:5" in by_distribution["acme-crash"]["reason"]
    text = crowded.infimum("plugins", cwd=tmp_path).stdout
    assert "acme_crash wants a license key" in text
    assert "needs infimum >=99" in text


def test_strict_plugins_fails(crowded, run_file):
    done = crowded.infimum("--strict-plugins", "run", run_file.name, cwd=run_file.parent, code=2)
    for name in ("acme-crash", "acme-future", "infimum-zeroth", "zz-ripple"):
        assert name in done.stderr
    assert "Traceback" not in done.stderr
    assert not (run_file.parent / "runs").exists()


def test_a_component_of_a_broken_plugin_is_refused_with_the_reason(crowded, run_file):
    done = crowded.infimum("run", run_file.name, "solver.use=crash.solver", cwd=run_file.parent, code=2)
    assert "no solver called 'crash.solver': plugin crash is failed: SystemExit" in done.stderr
