# SPDX-License-Identifier: Apache-2.0
"""The page of serve in a real browser: it follows the samples, reconnects, and leaves alone what the reader does."""

import contextlib

import pytest

from conftest import PATIENCE, Machine, free_port, holder
from page import has_page, missing
from served import serving
from test_page import CONTRAST, DESKTOP, INK, PHONE, browser  # noqa: F401

pytestmark = [
    pytest.mark.slow,  # a sanitizer checks only the program, which test_serve.py covers
    pytest.mark.timed,
    pytest.mark.xdist_group("live browser"),
]

# Holds a segment, and is called something that must not become markup.
HOLD = """
import mmap, os
fd = os.memfd_create("torch_1")
os.ftruncate(fd, 4 << 20)
segment = mmap.mmap(fd, 4 << 20)
segment.write(b"x" * (4 << 20))
"""
HOSTILE = "<img src=x onerror=alert(1)></script><b>"

# Functions: an expression in a string would be evaluated in the page, which its policy forbids.
LIVE = "() => document.getElementById('live').textContent === '● Live'"


@pytest.fixture(scope="module")
def served():
    if not has_page():
        missing("the program was built without the page: scripts/need web, and build again")
    with serving() as one:
        yield one


@contextlib.contextmanager
def opened(browser, url, viewport=None, ready=True, expected=(), **settings):  # noqa: F811
    """Opens the page. It must request nothing but what serve has, and log no errors but the expected."""
    context = browser.new_context(viewport=viewport or DESKTOP, timezone_id="UTC", locale="en-GB", **settings)
    try:
        page = context.new_page()
        errors, asked = [], []
        page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        if ready:
            page.wait_for_selector("#machine canvas")
            page.wait_for_function(LIVE)
        yield page
        assert [error for error in errors if not any(word in error for word in expected)] == []
        origin = url.split("?")[0].rstrip("/")
        assert {address.partition("?")[0] for address in asked} <= {origin + "/", origin + "/api/stream", origin + "/favicon.ico"}
    finally:
        context.close()


def test_follows(browser, served):  # noqa: F811
    with opened(browser, served.url) as page:
        assert page.title() == "live · shmguard"
        assert page.locator("canvas").count() == 4 and page.locator("#machine canvas").evaluate(INK)["colors"] > 4
        assert page.locator("#figures-title").inner_text() == "Now" and "The last 15 min" in page.locator("#recorded").inner_text()
        with holder(Machine(), HOLD, HOSTILE) as pid:
            row = page.locator("#processes tr", has_text=f"process {pid}")
            row.wait_for(timeout=1000 * PATIENCE)
            page.wait_for_function(f"() => [...document.querySelectorAll('#subject option')].some(({{value}}) => value.startsWith('{pid} '))")
            assert HOSTILE in row.inner_text() or "<img src=x onerror=alert(1)>" in row.inner_text()
            assert page.locator("img").count() == 0
            row.locator("button").click()
            assert page.locator("#memory .note").inner_text().startswith(f"process {pid}")
            before = page.locator("#memory canvas").evaluate("canvas => canvas.toDataURL()")
            page.wait_for_function("before => document.querySelector('#memory canvas').toDataURL() !== before", arg=before, timeout=1000 * PATIENCE)
        row.wait_for(state="detached", timeout=1000 * PATIENCE)
        page.locator("#events td", has_text=f"process {pid}").first.wait_for(timeout=1000 * PATIENCE)


def test_leaves_the_reader_alone(browser, served):  # noqa: F811
    with opened(browser, served.url) as page:
        limit = page.locator("#shm .legend button", has_text="size of /dev/shm")
        limit.focus()
        pressed = limit.get_attribute("aria-pressed")
        page.evaluate("window.marked = document.activeElement")
        page.wait_for_timeout(2500)
        assert page.evaluate("document.activeElement === window.marked && window.marked.isConnected"), "the legend must stay"
        limit.click()
        assert limit.get_attribute("aria-pressed") != pressed
        page.wait_for_timeout(1500)
        assert limit.get_attribute("aria-pressed") != pressed
        # A span that was chosen stays, while time goes on.
        page.click("#closer")
        zoomed = page.locator("#range").inner_text()
        page.wait_for_timeout(2500)
        assert page.locator("#range").inner_text() == zoomed != ""
        page.click("#whole")
        page.wait_for_function("() => document.getElementById('range').textContent === ''")


def test_reconnects(browser):  # noqa: F811
    port = free_port()
    with serving(listen=f"127.0.0.1:{port}") as served:
        if served.get("/").status == 501:
            missing("the program was built without the page")
        with opened(browser, served.url, expected=["ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE"]) as page:
            page.evaluate("window.same = true")
            served.process.terminate()
            served.process.wait()
            page.wait_for_function("() => document.getElementById('live').textContent.startsWith('Connection lost at ')", timeout=1000 * PATIENCE)
            assert "lost" in page.locator("#live").get_attribute("class")
            with serving(listen=f"127.0.0.1:{port}"):
                page.wait_for_function(LIVE, timeout=1000 * PATIENCE)
                assert page.evaluate("window.same"), "without loading the page again"
                assert page.locator("#machine canvas").evaluate(INK)["colors"] > 4


def test_token(browser, tmp_path):  # noqa: F811
    file = tmp_path / "token"
    file.write_text("0123456789abcdefghij")
    with serving("--token-file", file) as served:
        with opened(browser, served.url, ready=False, expected=["401"]) as page:
            assert "requires its token" in page.content()
        with opened(browser, served.url + "/?token=0123456789abcdefghij") as page:
            assert page.url == served.url + "/", "the token does not stay in the address"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_and_phone(browser, served, scheme):  # noqa: F811
    with opened(browser, served.url, PHONE, color_scheme=scheme) as page:
        worst = page.evaluate(CONTRAST)
        assert worst["ratio"] >= 4.5, worst
        page.evaluate("document.getElementById('live').classList.add('lost')")
        assert page.evaluate(CONTRAST)["ratio"] >= 4.5
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
