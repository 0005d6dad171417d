"""The report in a real browser: it loads without a word in the console, asks for nothing, and every switch works."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import infimum
from infimum import Composite
from infimum.functions import L1, LeastSquares

CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser")
DRIVER = ("/usr/bin/chromedriver", "/usr/lib/chromium-browser/chromedriver")
WIDE, NARROW = 1280, 360


def _installed(places: tuple[str, ...]) -> str | None:
    return next((one for one in places if os.access(one, os.X_OK)), None) or shutil.which(Path(places[0]).name)


def _absent(what: str) -> None:
    message = f"{what} is not installed; apt-get install chromium chromium-driver, pip install selenium"
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{message}: the report must be tested in a browser in CI")
    pytest.skip(message)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Headless Chromium from the system's packages with a fresh profile; nothing is downloaded."""
    program, driver = _installed(CHROMIUM), _installed(DRIVER)
    if program is None or driver is None:
        _absent("Chromium" if program is None else "chromedriver")
    try:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
    except ImportError:
        _absent("selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    profile = tmp_path_factory.mktemp("profile")
    for one in (
        "headless=new",
        "no-sandbox",
        "disable-gpu",
        "disable-dev-shm-usage",
        "window-size=1400,1000",
        "force-prefers-reduced-motion",
        f"user-data-dir={profile}",
    ):
        options.add_argument(f"--{one}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    made = webdriver.Chrome(options=options, service=Service(driver))
    made.set_script_timeout(60)
    yield made
    made.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page with bands, a lost run, long names, many curves, and tables long enough to be cut."""
    from infimum.many.members import Member, Runs

    A = np.random.default_rng(4).standard_normal((12, 3))
    problem = Composite({"loss": LeastSquares(A, np.ones(12)), "penalty": 0.1 * L1()})

    def one(name: str, k: int, step: float) -> Member:
        solver = {"use": "splitting.proximal_gradient", "step": step}
        rule = "max_iter(80) | grad_norm(1e-12)"
        result = infimum.solve(problem, "random", solver=solver, stopping=rule, seed=1, repetition=k)
        return Member(f"{name} #{k}", "lasso", name, {"solver.step": step}, k, {}, str(result.status), kept=result)

    named = [("a.method_with_a_long_name(acceleration=true)", 0.05), ("another.method", 0.02), ("third", 0.01)]
    members = [one(name, k, step) for name, step in named for k in range(7)]
    members.append(Member("lost.method #0", "lasso", "lost.method", {}, 0, {}, "crashed", error="signal 9"))
    path = tmp_path_factory.mktemp("report") / "report.html"
    pytest.importorskip("jinja2")
    pytest.importorskip("plotly")
    return infimum.report(Runs(name="browser", members=tuple(members)), out=path)


@pytest.fixture
def opened(browser: Any, page: Path) -> Any:
    """The page at 1280 pixels, in light colors, with its first figures drawn; logs before it are dropped."""
    show(browser, page, WIDE)
    return browser


def show(browser: Any, page: Path, width: int, scheme: str = "light") -> None:
    for log in ("browser", "performance"):
        browser.get_log(log)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    browser.get(page.as_uri())
    # Figures are drawn when they come near the window.
    for figure in browser.find_elements("css selector", ".plot"):
        browser.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", figure)
        browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    until(browser, "return [...document.querySelectorAll('.canvas')].every(one => one.querySelector('.xtitle'))")
    browser.execute_script("window.scrollTo({top: 0, behavior: 'instant'})")


def until(browser: Any, script: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 30).until(lambda one: one.execute_script(script))


def axis_titles(browser: Any) -> list[str]:
    script = "return [...document.querySelectorAll('#curves .xtitle')].map(node => node.textContent)"
    return list(browser.execute_script(script))


def click(browser: Any, element: Any) -> None:
    """A real click in the middle of the window."""
    browser.execute_script("arguments[0].scrollIntoView({block: 'center', behavior: 'instant'})", element)
    element.click()


def press(browser: Any, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def test_it_loads_in_silence_and_asks_for_nothing(opened: Any, page: Path) -> None:
    assert opened.get_log("browser") == []
    messages = [json.loads(one["message"])["message"] for one in opened.get_log("performance")]
    asked = {one["params"]["request"]["url"] for one in messages if one["method"] == "Network.requestWillBeSent"}
    assert {one for one in asked if not one.startswith("data:")} == {page.as_uri()}


def test_the_axis_switch_moves_all_curves(opened: Any) -> None:
    from selenium.webdriver.common.by import By

    count = len(axis_titles(opened))
    assert count == 3 and set(axis_titles(opened)) == {"iterations"}
    read = "return document.querySelector('.canvas')._fullData.map(trace => [...trace.x].pop())"
    before = opened.execute_script(read)
    for name in ("seconds", "all evaluations", "gradient evaluations", "prox evaluations"):
        click(opened, opened.find_element(By.XPATH, f"//fieldset//label[span='{name}']"))
        assert axis_titles(opened) == [name] * count
        assert opened.execute_script(read) != before or name.startswith(("gradient", "prox"))
    click(opened, opened.find_element(By.XPATH, "//fieldset//label[span='iterations']"))
    assert opened.execute_script(read) == before
    assert opened.get_log("browser") == []


def test_scales_and_curves_are_switched(opened: Any) -> None:
    from selenium.webdriver.common.by import By

    figure = opened.find_element(By.CSS_SELECTOR, ".plot")
    state = "return ['xaxis', 'yaxis'].map(axis => document.querySelector('.canvas')._fullLayout[axis].type)"
    for k in (0, 1):
        button = figure.find_elements(By.CSS_SELECTOR, ".controls button")[k]
        before = opened.execute_script(state)[k]
        click(opened, button)
        assert opened.execute_script(state)[k] == {"log": "linear", "linear": "log"}[before]
        assert button.get_attribute("aria-pressed") == str(before == "linear").lower()
    traces = "return document.querySelector('.canvas').data.length"
    all_of = opened.execute_script(traces)
    key = figure.find_element(By.CSS_SELECTOR, ".legend button")
    click(opened, key)
    assert opened.execute_script(traces) == all_of - 3  # a median and the two edges of its band
    assert key.get_attribute("aria-pressed") == "false"
    click(opened, key)
    assert opened.execute_script(traces) == all_of


@pytest.mark.parametrize("n", [9, 200])
def test_gaps_are_gaps(browser: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    from infimum.plugins import hook, registry
    from infimum.plugins.loader import new_manager
    from infimum.reporting import Curve, Figure, Section

    class Plugin:
        @hook
        def infimum_report_sections(self, result: Any) -> Any:
            y = np.linspace(2, 3, n)
            y[[2, 5, 7]] = np.nan
            curve = Curve(np.arange(1.0, n + 1), y, low=0.5 * y, high=2 * y)
            return [Section("Gaps", figures=[Figure("Gaps", [curve], x="place", y="height")])]

    manager = new_manager()
    manager.register(Plugin(), "acme")
    monkeypatch.setattr(registry, "_registry", registry.Registry(registry.get_registry().plugins, manager))
    result = infimum.solve(
        lambda x: float(x @ x), np.ones(2), solver="scipy.nelder_mead", stopping="max_iter(3)", seed=1
    )
    show(browser, infimum.report(result, out=tmp_path / "gaps.html"), WIDE)
    canvas = "[...document.querySelectorAll('.canvas')].pop()"
    assert browser.execute_script(f"return {canvas}.data.filter(one => one.fill).length") == 4
    lines = f"[...{canvas}.querySelectorAll('.js-line')].filter(one => one.style.strokeWidth === '2px')"
    drawn = browser.execute_script(f"return {lines}.map(one => one.getAttribute('d'))")
    assert sum("L" in one for one in drawn) == (2 if n == 9 else 3)
    # The point between two gaps has a marker.
    drawn = f"[...{canvas}.querySelectorAll('.scatterlayer .points path')].map(one => one.__data__.x)"
    assert browser.execute_script(f"return {drawn}.includes(7)")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_horizontal_scroll_on_a_phone(browser: Any, page: Path, scheme: str) -> None:
    show(browser, page, NARROW, scheme)
    browser.execute_script("document.querySelectorAll('.more').forEach(one => one.click())")
    browser.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert browser.execute_script("return document.documentElement.scrollWidth") == NARROW
    wide = (
        "return [...document.querySelectorAll('main *')].filter(one => !one.closest('svg, pre, .hidden') && "
        "one.getBoundingClientRect().right > innerWidth + 1).map(one => one.outerHTML.slice(0, 200))"
    )
    assert browser.execute_script(wide) == []
    cut = (
        "return [...document.querySelectorAll('.canvas text')].filter(one => { const box = one.getBoundingClientRect();"
        " return box.width && (box.left < 0 || box.right > innerWidth + 1); }).map(one => one.textContent)"
    )
    assert browser.execute_script(cut) == []


def test_every_switch_is_reached_by_the_keyboard(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    wanted = opened.execute_script(
        "return [...document.querySelectorAll('button, input, summary, nav a')].filter(one => one.checkVisibility() && "
        "(one.type !== 'radio' || one.checked)).map((one, k) => (one.dataset.stop = k, k))"
    )
    reached = set()
    for _ in range(len(wanted) + 20):
        press(opened, Keys.TAB)
        stop = opened.execute_script("return document.activeElement.dataset.stop")
        if stop is not None:
            reached.add(int(stop))
    assert reached == set(wanted) and len(wanted) > 20


def test_the_keyboard_works_the_switches(opened: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    opened.execute_script("document.querySelector('.axis-switch input').focus()")
    press(opened, Keys.ARROW_RIGHT)
    assert set(axis_titles(opened)) == {"seconds"}
    ring = "return getComputedStyle(document.activeElement.nextElementSibling).outlineStyle"
    assert opened.execute_script(ring) == "solid"
    opened.execute_script("document.querySelector('.controls button').focus()")
    press(opened, Keys.SPACE)
    assert opened.execute_script("return document.activeElement.getAttribute('aria-pressed')") == "true"
    assert opened.execute_script("return getComputedStyle(document.activeElement).outlineStyle") == "solid"
    opened.execute_script("document.querySelector('th .sort').focus()")
    press(opened, Keys.ENTER)
    assert opened.execute_script("return document.activeElement.parentElement.ariaSort") == "ascending"


def test_tables_sort_by_number_and_show_all(opened: Any) -> None:
    from selenium.webdriver.common.by import By

    table = opened.find_element(By.CSS_SELECTOR, "#runs table")
    heading = table.find_element(By.XPATH, ".//th[button='Objective']")
    column = len(heading.find_elements(By.XPATH, "preceding-sibling::th"))
    click(opened, heading.find_element(By.TAG_NAME, "button"))
    read = f"return [...document.querySelectorAll('#runs tbody tr')].map(row => row.cells[{column}].dataset.sort)"
    texts = opened.execute_script(read)
    values = [float(one) for one in texts if one]
    assert values == sorted(values) and texts[-1] == "" and len(values) == 21
    shown = "return [...document.querySelectorAll('#runs tbody tr')].filter(row => row.checkVisibility()).length"
    assert opened.execute_script(shown) == 15
    click(opened, opened.find_element(By.CSS_SELECTOR, "#runs .more"))
    assert opened.execute_script(shown) == 22


def test_colors_follow_the_system_and_the_switch(browser: Any, page: Path) -> None:
    from selenium.webdriver.common.by import By

    paper = "return getComputedStyle(document.body).backgroundColor"
    line = "return document.querySelector('.canvas').data[2].line.color"
    show(browser, page, WIDE, "dark")
    dark = browser.execute_script(paper), browser.execute_script(line)
    click(browser, browser.find_element(By.XPATH, "//label[span='light']"))
    light = browser.execute_script(paper), browser.execute_script(line)
    assert light[0] == "rgb(255, 255, 255)" and dark[0] != light[0] and dark[1] != light[1]


def test_text_stands_out_from_its_ground(browser: Any, page: Path) -> None:
    """WCAG's 4.5 to 1 for every text, in both color schemes."""
    script = """
      const parse = (text) => text.match(/[\\d.]+/g).map(Number);
      const linear = (v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
      const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
      const ground = (node) => {
        for (; node; node = node.parentElement) {
          const color = parse(getComputedStyle(node).backgroundColor);
          if (color.length < 4 || color[3] > 0) return color;
        }
        return [255, 255, 255];
      };
      const found = [];
      for (const node of document.querySelectorAll("body *")) {
        const own = [...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
        if (!own || node.closest("svg, script, .hidden, .skip") || !node.checkVisibility()) continue;
        const pair = [light(parse(getComputedStyle(node).color)), light(ground(node))].sort((x, y) => y - x);
        const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
        if (contrast < 4.5) found.push([node.textContent.trim().slice(0, 40), contrast]);
      }
      return found;
    """
    for scheme in ("light", "dark"):
        show(browser, page, WIDE, scheme)
        assert browser.execute_script(script) == [], scheme


def test_on_paper_everything_is_there(opened: Any) -> None:
    import base64

    drawn = "return document.querySelectorAll('.canvas .xtitle').length"
    answer = opened.execute_cdp_cmd("Page.printToPDF", {"printBackground": False})
    assert base64.b64decode(answer["data"]).startswith(b"%PDF")
    assert opened.execute_script(drawn) == opened.execute_script("return document.querySelectorAll('.canvas').length")
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    hidden = "return [...document.querySelectorAll('tbody tr')].filter(row => !row.checkVisibility()).length"
    assert opened.execute_script(hidden) == 0
    assert opened.execute_script("return document.querySelector('nav').checkVisibility()") is False
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert opened.get_log("browser") == []
