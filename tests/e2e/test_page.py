# SPDX-License-Identifier: Apache-2.0
"""The page of report -o in a real browser: it loads, draws, zooms and shows values, and requests nothing from the network."""

import contextlib
import json
import os
import sqlite3
import subprocess

import pytest

from conftest import HERE, PYTHONS, Machine
from page import chromium, has_page, make_recording, missing, playwright

pytestmark = [
    pytest.mark.slow,  # a sanitizer checks only the program, which test_report.py covers
    pytest.mark.xdist_group("browser"),  # all share one browser
]

DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}

# The number of colours on a canvas, and how much of it is drawn on.
INK = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colors = new Set();
    let drawn = 0;
    for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] === 0) continue;
        drawn++;
        colors.add((data[i] << 16) | (data[i + 1] << 8) | data[i + 2]);
    }
    return { colors: colors.size, part: drawn / (data.length / 4) };
}"""

# The lowest contrast of any visible text with its background (WCAG).
CONTRAST = """() => {
    const parse = (text) => (text.match(/[\\d.]+/g) ?? []).map(Number);
    const light = ([r, g, b]) => [r, g, b].map((c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (element) => {
        for (; element; element = element.parentElement) {
            const color = parse(getComputedStyle(element).backgroundColor);
            if (color.length === 3 || color[3] === 1) return color;
        }
        return [255, 255, 255];
    };
    let worst = { ratio: 21 };
    for (const element of document.querySelectorAll("h1, h2, h3, h4, p, li, dt, dd b, span, td, th, summary, button, caption")) {
        if (!element.textContent.trim() || element.disabled || !element.checkVisibility() || element.closest("[aria-pressed=false], :disabled")) continue;
        const [a, b] = [light(parse(getComputedStyle(element).color)), light(behind(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < worst.ratio) worst = { ratio, tag: element.tagName, text: element.textContent.slice(0, 40) };
    }
    return worst;
}"""

# How much of a canvas is drawn in a given colour of the page.
PAINTED = """(canvas, name) => {
    const made = document.createElement("canvas").getContext("2d");
    made.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
    made.fillRect(0, 0, 1, 1);
    const [r, g, b] = made.getImageData(0, 0, 1, 1).data;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    let n = 0;
    for (let i = 0; i < data.length; i += 4) n += data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255;
    return n;
}"""

# Three epochs, each followed by a validation with workers that live for a shorter time.
EPOCHS = """
import time, torch
from torch.utils.data import DataLoader, Dataset
torch.set_num_threads(1)
class Samples(Dataset):
    def __init__(self, n):
        self.n = n
    def __len__(self):
        return self.n
    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.ones(10_000)
train, validation = (DataLoader(Samples(n), batch_size=4, num_workers=2) for n in (120, 8))
for epoch in range(3):
    for loader in (train, validation):
        for batch in loader:
            pass
"""


@pytest.fixture(scope="module")
def browser():
    api = playwright()
    executable = chromium()
    with api.sync_playwright() as driver:
        without = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}  # unlinked.py has FFmpeg
        started = driver.chromium.launch(executable_path=executable, args=["--no-sandbox"], env=without)
        yield started
        started.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The page of an artificial training, and the matching --json."""
    if not has_page():
        missing("the program was built without the page: scripts/need web, and build again")
    directory = tmp_path_factory.mktemp("page")
    recording = make_recording(directory / "run.db", 1200, 1, 8)
    html = directory / "report.html"
    done = Machine().shmguard("report", recording, "-o", html, "--json")
    assert done.returncode == 0 and done.stderr == b"", done
    return html, json.loads(done.stdout)


@contextlib.contextmanager
def opened(browser, html, viewport=None, **settings):
    """Opens the page. It must not log errors, open dialogs, or request anything but itself."""
    context = browser.new_context(viewport=viewport or DESKTOP, timezone_id="UTC", locale="en-GB", **settings)
    try:
        page = context.new_page()
        errors, asked = [], []
        page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(html.as_uri())
        page.wait_for_selector("#machine canvas")
        yield page
        page.wait_for_timeout(50)
        assert errors == []
        assert asked == [html.as_uri()], "the page is one file"
    finally:
        context.close()


def plot(page, chart):
    over = page.locator(f"#{chart} .u-over")
    over.scroll_into_view_if_needed()
    return over.bounding_box()


def hover(page, chart, part):
    box = plot(page, chart)
    page.mouse.move(box["x"] + box["width"] * part, box["y"] + box["height"] / 2)
    return page.locator(f"#{chart} .tip")


def test_draws(browser, report):
    html, answer = report
    with opened(browser, html) as page:
        canvases = page.locator("canvas")
        assert canvases.count() == 4
        for i in range(4):
            ink = canvases.nth(i).evaluate(INK)
            assert ink["colors"] > 8 and 0.005 < ink["part"] < 0.9, (i, ink)
        assert page.title().endswith("shmguard report")
        assert [heading.inner_text() for heading in page.locator("h2:visible").all()] == [
            "Verdict", "Peaks", "Memory", "/dev/shm", "Descriptors", "Machine and control group", "Events", "Processes"]


def test_tells_the_verdict_first(browser, report):
    html, answer = report
    with opened(browser, html) as page:
        cards = page.locator("[data-verdict]")
        first = answer["verdicts"][0]
        assert cards.first.get_attribute("data-verdict") == answer["overall"] == first["id"]
        text = cards.first.inner_text()
        assert first["meaning"] in text and first["evidence"] in text and first["rate_words"] in text
        assert all(fix["what"] in text for fix in first["fixes"])
        assert {card.get_attribute("data-verdict") for card in cards.all()} == {verdict["id"] for verdict in answer["verdicts"]}
        assert page.locator("#verdicts").bounding_box()["y"] < page.locator("#figures").bounding_box()["y"] < page.locator("#memory").bounding_box()["y"]


def test_zooms_by_dragging(browser, report):
    html, _ = report
    with opened(browser, html) as page:
        assert page.locator("#whole").is_disabled() and page.locator("#range").inner_text() == ""
        before = page.locator("#fds canvas").evaluate("canvas => canvas.toDataURL()")
        box = plot(page, "memory")
        page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 60, steps=4)
        page.mouse.up()
        # A quarter of the twenty minutes, in all charts.
        page.wait_for_function("document.getElementById('range').textContent.includes('5 min')")
        assert page.locator("#range").inner_text().startswith(("10:04:5", "10:05:0"))
        page.wait_for_function("before => document.querySelector('#fds canvas').toDataURL() !== before", arg=before)
        page.click("#farther")
        page.wait_for_function("document.getElementById('range').textContent.includes('10 min')")
        page.click("#whole")
        page.wait_for_function("document.getElementById('range').textContent === ''")
        page.click("#closer")
        assert page.locator("#range").inner_text() != ""
        page.mouse.dblclick(*(lambda b: (b["x"] + 200, b["y"] + 60))(plot(page, "shm")))
        page.wait_for_function("document.getElementById('range').textContent === ''")


def test_shows_values_where_the_mouse_is(browser, report):
    html, _ = report
    with opened(browser, html) as page:
        tip = hover(page, "memory", 0.5)
        tip.wait_for(state="visible")
        text = tip.inner_text()
        assert "10 min in" in text and "trainer 4100" in text and "GiB" in text and "together" in text
        assert "epoch 3" in text, "events are shown, too"
        # The other charts show their values at the same time.
        readouts = page.locator("#fds .legend .value").all_inner_texts()
        assert readouts[0].isdigit() and 380 <= int(readouts[0]) <= 410
        page.mouse.move(5, 5)
        tip.wait_for(state="hidden")
        assert page.locator("#fds .legend .value").first.inner_text().startswith("peak ")


def test_keyboard(browser, report):
    html, _ = report
    with opened(browser, html) as page:
        page.locator("#memory .plot").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Shift+ArrowRight")
        page.locator("#memory .tip").wait_for(state="visible")
        page.keyboard.press("+")
        assert "10 min" in page.locator("#range").inner_text()
        page.keyboard.press("0")
        assert page.locator("#range").inner_text() == ""
        # All controls can be reached with the Tab key alone, in the order in which they appear.
        page.locator("#subject").focus()
        seen = []
        for _ in range(8):
            page.keyboard.press("Tab")
            seen.append(page.evaluate("document.activeElement.id || document.activeElement.className"))
        assert seen[:4] == ["earlier", "later", "closer", "farther"] and "plot" in seen


def test_one_process(browser, report):
    html, _ = report
    with opened(browser, html) as page:
        before = page.locator("#memory canvas").evaluate("canvas => canvas.toDataURL()")
        page.select_option("#subject", label=next(label for label in page.locator("#subject option").all_inner_texts() if label.startswith("worker 4202")))
        assert page.locator("#memory .note").inner_text().startswith("worker 4202")
        assert page.locator("#memory canvas").evaluate("canvas => canvas.toDataURL()") != before
        assert [text.split("\n")[0] for text in page.locator("#memory .legend button").all_inner_texts()] == [
            "private (anonymous)", "files", "shared memory", "private (USS, sampled in turns)"]
        tip = hover(page, "memory", 0.25)
        tip.wait_for(state="visible")
        assert "private (anonymous)" in tip.inner_text()
        assert "Nothing was measured" in hover(page, "memory", 0.9).inner_text()
        page.locator("#memory .legend button").first.click()
        assert page.locator("#memory .legend button").first.get_attribute("aria-pressed") == "false"
        page.locator("#processes button", has_text="trainer 4100").click()
        assert page.locator("#memory .note").inner_text().startswith("trainer 4100")


def test_limit_and_kinds(browser, report):
    html, _ = report
    with opened(browser, html) as page:
        limit = page.locator("#shm .legend button", has_text="size of /dev/shm")
        assert "1.0 GiB" in limit.inner_text()
        assert limit.get_attribute("aria-pressed") == "false", "hidden, because it is far above the rest and would flatten the chart"
        limit.click()
        page.locator("#shm details summary").click()
        page.locator("#shm th", has_text="size of /dev/shm").wait_for()
        page.select_option("#subject", "by-kind")
        assert page.locator("#shm .legend button", has_text="nccl").count() == 1
        assert limit.get_attribute("aria-pressed") == "true", "the reader's choice must stay"


def test_table(browser, report):
    html, _ = report
    with opened(browser, html) as page:
        page.locator("#memory details summary").click()
        rows = page.locator("#memory table tbody tr")
        rows.first.wait_for()
        assert 10 < rows.count() <= 26
        assert rows.first.inner_text().startswith("Peak")
        assert page.locator("#memory table caption").count() == 1


def test_strangers_words_stay_words(browser, report):
    html, _ = report
    text = html.read_text()
    assert "<script>alert" not in text and "<img" not in text
    with opened(browser, html) as page:
        assert page.locator("script").count() == 2 and page.locator("img, b b").count() == 0
        assert "</script><script>alert(1)</script>" in page.locator("#command").inner_text()
        assert "<img src=x onerror=alert(2)> \\x1b[31m" in page.locator("#processes").inner_text()
        assert "<b>killed</b>" in page.locator("#events").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_phone(browser, report, scheme):
    html, _ = report
    with opened(browser, html, PHONE, color_scheme=scheme, device_scale_factor=2, is_mobile=True, has_touch=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        assert page.locator("canvas").first.evaluate(INK)["colors"] > 8
        page.locator("#memory .u-over").tap()
        page.locator("#memory .tip").wait_for(state="visible")
        page.locator("#closer").tap()
        assert page.locator("#range").inner_text() != ""
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(browser, report, scheme):
    html, _ = report
    with opened(browser, html, color_scheme=scheme) as page:
        dark = page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(18, 22, 28)"
        assert dark == (scheme == "dark")
        worst = page.evaluate(CONTRAST)
        assert worst["ratio"] >= 4.5, worst
        before = page.locator("#memory canvas").evaluate("canvas => canvas.toDataURL()")
        page.emulate_media(color_scheme="light" if scheme == "dark" else "dark")
        page.wait_for_function("before => document.querySelector('#memory canvas').toDataURL() !== before", arg=before)


def test_paper(browser, report):
    html, _ = report
    with opened(browser, html, color_scheme="dark") as page:
        page.emulate_media(media="print")
        page.wait_for_selector("html[data-paper]")
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
        assert not page.locator("#subject").is_visible() and not page.locator("details").first.is_visible()
        assert page.locator("#verdicts").is_visible() and page.locator("#memory canvas").is_visible()
        assert page.locator("#memory canvas").bounding_box()["width"] <= 700
        pdf = page.pdf(format="A4")
        assert pdf.startswith(b"%PDF") and len(pdf) > 20000
        page.emulate_media(media="screen")
        page.wait_for_selector("html:not([data-paper])")
        page.wait_for_function("document.querySelector('#memory .uplot').offsetWidth > 1000")


def test_a_single_sample(browser, report, tmp_path):
    """The shortest possible recording is drawn, too."""
    recording = make_recording(tmp_path / "one.db", 1, 1, 0)
    html = tmp_path / "one.html"
    assert Machine().shmguard("report", recording, "-o", html).returncode == 0
    with opened(browser, html) as page:
        assert page.locator("[data-verdict]").first.get_attribute("data-verdict") == "too-short"
        assert page.locator("canvas").count() == 4


def test_a_real_training(browser, report, tmp_path):
    """Records, judges and draws a training. The page agrees with report, and shows which processes started and ended."""
    recording, html = tmp_path / "real.db", tmp_path / "real.html"
    grow = [PYTHONS["system"], "-W", "ignore", HERE / "grow.py", "--kind", "worker-leak", "--rate", "20", "--seconds", "6"]
    machine = Machine()
    done = machine.shmguard("record", "-q", "-o", recording, "-i", "0.1", "--", *grow, stderr=subprocess.DEVNULL)
    assert done.returncode == 0, done
    answer = machine.json("report", recording, "-o", html)
    workers = [process["pid"] for process in answer["processes"] if process["role"] == "worker"]
    assert len(workers) == 2
    with opened(browser, html) as page:
        assert page.locator("[data-verdict]").first.get_attribute("data-verdict") == answer["overall"]
        assert answer["verdicts"][0]["evidence"] in page.locator("#verdicts").inner_text()
        options = page.locator("#subject option").all_inner_texts()
        assert all(any(option.startswith(f"worker {pid}") for option in options) for pid in workers)
        assert "started" in page.locator("#events").inner_text()
        assert page.locator("#memory canvas").evaluate(INK)["colors"] > 8


def test_epochs_are_marks(browser, report, tmp_path):
    """Epochs are recognized by the new workers of the training loader. Those of the validation loader do not count."""
    recording, html = tmp_path / "epochs.db", tmp_path / "epochs.html"
    machine = Machine()
    done = machine.shmguard("record", "-q", "-o", recording, "-i", "0.1", "--", PYTHONS["system"], "-c", EPOCHS, stderr=subprocess.DEVNULL)
    assert done.returncode == 0, done
    answer = machine.json("report", recording, "-o", html)
    words = [f"epoch {n} (seen from new workers)" for n in (1, 2, 3)]
    epochs = [event for event in answer["events"] if event["kind"] == "epoch"]
    assert [event["text"] for event in epochs] == words
    assert {event["role"] for event in epochs} == {"trainer"}
    assert "epochs: 3" in machine.shmguard("report", recording).stdout.decode()
    with opened(browser, html) as page:
        for chart in ("memory", "shm", "fds"):
            assert page.locator(f"#{chart} canvas").evaluate(PAINTED, "--event-epoch") > 100, chart
        text = page.locator("#events").text_content()
        assert all(word in text for word in words)
        times = [event["seconds"] for event in epochs]
        with contextlib.closing(sqlite3.connect(recording)) as db:
            first, last = db.execute("SELECT min(seconds), max(seconds) FROM moment").fetchone()
        assert words[1] in hover(page, "memory", (times[1] - first) / (last - first)).inner_text()


def test_several_recordings_on_one_page(browser, tmp_path):
    """A row for each rank; the late one is marked, and its recording is the one that is shown first."""
    if not has_page():
        missing("the program was built without the page: scripts/need web, and build again")
    for number, waited in enumerate((0, 900_000)):
        file = make_recording(tmp_path / f"node-{number}.db", 1200, 1, 2)
        with contextlib.closing(sqlite3.connect(file)) as db, db:
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [("node", f"<b>node-{number}"), ("rank", number)])
            db.execute("UPDATE process SET rank = NULL")
            db.execute("UPDATE moment SET guard_waited_msec = CAST(? * seconds / 1200 AS INTEGER)", [waited])
    html = tmp_path / "report.html"
    done = Machine().shmguard("report", tmp_path, "-o", html)
    assert done.returncode == 0, done
    with opened(browser, html) as page:
        assert page.locator("#late h3").all_inner_texts() == ["Late: rank 1, <b>node-1"]
        assert page.locator("#ranks tbody tr").count() == page.locator("#nodes tbody tr").count() == 2
        assert "waits for room" in page.locator("#ranks tbody tr").nth(1).inner_text()
        assert page.locator("#recording option:checked").inner_text().endswith("node-1.db")
        page.get_by_role("button", name="rank 0, <b>node-0").click()
        assert page.locator("#recorded").inner_text().endswith("node-0.db")
        assert page.locator("#recording option:checked").inner_text().endswith("node-0.db")
    with opened(browser, html, viewport={"width": 390, "height": 800}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
