# SPDX-License-Identifier: Apache-2.0
"""The static site of the documentation, opened from the disk in a real browser."""

import re
import subprocess

import pytest

from conftest import PROJECT
from page import chromium, missing, playwright

pytestmark = [
    pytest.mark.slow,  # the program has no part in it
    pytest.mark.xdist_group("browser"),  # all share one browser
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    directory = tmp_path_factory.mktemp("site")
    if subprocess.run(["/usr/bin/python3", "-c", "import markdown"], stderr=subprocess.DEVNULL, check=False).returncode != 0:
        missing("no python3-markdown: scripts/need site installs it")
    done = subprocess.run(["/usr/bin/python3", PROJECT / "scripts" / "site", directory], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.fixture(scope="module")
def browser():
    with playwright().sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def tab(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.errors = []
    page.on("pageerror", lambda error: page.errors.append(str(error)))
    page.on("request", lambda request: request.url.startswith("file:") or page.errors.append(request.url))
    yield page
    assert page.errors == []
    page.close()


def test_links(site):
    """All links lead to a page, and to a heading of it."""
    pages = {path.relative_to(site).as_posix(): path.read_text() for path in site.rglob("*.html")}
    headings = {name: set(re.findall(r'id="([^"]+)"', text)) for name, text in pages.items()}
    wrong = []
    for name, text in pages.items():
        folder = name.rpartition("/")[0]
        for link in re.findall(r'(?:href|src)="([^"]+)"', text):
            if "://" in link:
                continue
            target, _, anchor = link.partition("#")
            path = (site / folder / target if target else site / name).resolve()
            known = headings.get(path.relative_to(site.resolve()).as_posix(), set())
            if not path.is_file() or (anchor and anchor not in known):
                wrong.append((name, link))
    assert pages and wrong == []


@pytest.mark.parametrize("language, words, found", [
    ("en", "bus error", "guide-bus-error.html"),
    ("en", "137", "guide-killed.html"),
    ("zh-CN", "总线", "guide-bus-error.html"),
    ("zh-CN", "打开的文件", "guide-too-many-open-files.html"),
])
def test_search(site, tab, language, words, found):
    tab.goto((site / language / "index.html").as_uri())
    tab.keyboard.press("/")
    tab.keyboard.type(words)
    first = tab.locator("#found a").first
    assert first.get_attribute("href").startswith(found)
    tab.keyboard.press("Enter")
    tab.wait_for_url(f"**/{language}/{found}*")
    assert tab.locator("main h1").is_visible()


def test_other_language(site, tab):
    tab.goto((site / "en" / "guide-killed.html").as_uri())
    tab.click("header a[lang]")
    assert tab.evaluate("document.documentElement.lang") == "zh-CN"
    assert "137" in tab.inner_text("h1")
    assert tab.locator("nav a[aria-current]").get_attribute("href") == "guide-killed.html"


@pytest.mark.parametrize("width", [390, 1280])
def test_fits(site, tab, width):
    """Nothing is wider than the window."""
    tab.set_viewport_size({"width": width, "height": 800})
    for name in ("index", "guides", "guide-what-changes", "reference"):
        tab.goto((site / "en" / f"{name}.html").as_uri())
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, name
        assert tab.locator("main").bounding_box()["width"] >= 0.6 * width, name
