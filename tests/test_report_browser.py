"""The report as a person meets it: opened in Chromium with the network off, on a screen, a phone and paper."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kit import report
from tests import browser, report_fixture

sync_api = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: the report was not looked at"
)

ENTRY = {"name": "week", "log": "week.csv", "status": "made", "report": "week/report.html", "rule": 3} | {
    "sentence": "Keep LRU. " * 20,
    "saving_per_month": None,
    "chargeback": report_fixture.chargeback(),
}
PAGES = {
    "both": lambda: report.render(report_fixture.results()),
    "finance": lambda: report.render(report_fixture.results(), "finance"),
    "owners": lambda: report.render({**report_fixture.results(), "chargeback": report_fixture.chargeback()}, "finance"),
    "no_prices": lambda: report.render(report_fixture.results(priced=False), "infra"),
    "nothing": lambda: report.render({}),
    "index": lambda: report.render_index([ENTRY]),
}
SERIOUS = {"serious", "critical"}


@pytest.fixture(scope="module")
def chromium():
    path = browser.chromium()
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=str(path), args=list(browser.LAUNCH))
        yield started
        started.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, make in PAGES.items():
        (folder / f"{name}.html").write_text(make(), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in PAGES}


class Visit:
    """One opened page with what it asked for and complained about."""

    def __init__(self, chromium, path: Path, width: int, **options):
        self.asked: list[str] = []
        self.said: list[str] = []
        self.context = chromium.new_context(viewport={"width": width, "height": 900}, offline=True, **options)
        self.page = self.context.new_page()
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(path.as_uri())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.context.close()

    def ask(self, script: str):
        return self.page.evaluate(script)


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_opens_offline_without_a_request_or_a_complaint(chromium, files, name, width):
    with Visit(chromium, files[name], width) as visit:
        outside = [url for url in visit.asked if not url.startswith(("data:", files[name].as_uri()))]
        assert outside == [] and visit.said == []
        assert visit.ask("document.documentElement.scrollWidth <= window.innerWidth")
        shown = "!e.closest('.scroll') && getComputedStyle(e).position !== 'absolute'"
        wide = f"e => e.getBoundingClientRect().right > innerWidth + 1 && {shown}"
        assert (
            visit.ask(f"[...document.querySelectorAll('main *')].filter({wide}).map(e => e.outerHTML.slice(0, 80))")
            == []
        )


@pytest.mark.parametrize("width", [1280, 390])
def test_every_figure_is_drawn_and_large_enough_to_read(chromium, files, width):
    with Visit(chromium, files["both"], width) as visit:
        sizes = visit.ask(
            "[...document.images].map(i => [i.complete, i.naturalWidth, "
            "i.closest('figure').querySelector('svg').getBoundingClientRect().width])"
        )
        assert len(sizes) == 6
        for complete, natural, shown in sizes:
            assert complete and natural > 100
            assert shown >= 0.94 * natural  # labels are drawn at 11 px and up: no smaller than about 10.4 px


def test_reads_the_same_without_script(chromium, files):
    with Visit(chromium, files["both"], 1280, java_script_enabled=False) as visit:
        assert visit.page.locator("#verdict").inner_text() == report_fixture.SENTENCE
        assert visit.page.locator("table").count() >= 9
        assert visit.page.locator("img:visible").count() == 6 and visit.page.locator("input").count() == 0


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing_serious(chromium, files, name, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    with Visit(chromium, files[name], width, bypass_csp=True) as visit:
        found = axe.Axe().run(visit.page)
        bad = [(v["id"], v["impact"], v["nodes"][0]["html"][:120]) for v in found.response["violations"]]
        assert [violation for violation in bad if violation[1] in SERIOUS] == []


@pytest.mark.parametrize("width", [1280, 390])
def test_with_script_the_curve_can_be_asked(chromium, files, width):
    """Slider, check boxes and pointer work by keyboard and by mouse, and the page's policy lets nothing else run."""
    with Visit(chromium, files["both"], width) as visit:
        page, figure = visit.page, visit.page.locator("#figure-capacity_curve")
        output, slider = figure.locator("output"), figure.locator("input[type=range]")
        assert output.inner_text().startswith("1,000,000 tokens: LFU with decay 46.0% ($425)")
        slider.focus()
        page.keyboard.press("End")
        assert output.inner_text().startswith("4,000,000 tokens: LRU 60.0% · other policies were replayed at 500k")
        assert slider.get_attribute("aria-valuetext") == "4,000,000 tokens"
        page.keyboard.press("Home")
        assert "500,000 tokens: " in output.inner_text() or "250,000 tokens: " in output.inner_text()
        plot = figure.locator("svg .background").first.bounding_box()
        page.mouse.move(plot["x"] + plot["width"] / 2, plot["y"] + plot["height"] / 2)
        assert output.inner_text().startswith("1,000,000 tokens: ")  # halfway from 250k to 4M on a logarithmic axis
        seen = "[...document.querySelectorAll('#figure-capacity_curve svg [data-says^=\"GDSF: \"]')]"
        assert visit.ask(f"{seen}.length") >= 5 and visit.ask(f"{seen}.every(e => e.getClientRects().length > 0)")
        assert figure.locator("svg .chosen").text_content() == "1,000,000 tokens"
        replayed = figure.locator("datalist option").evaluate_all("all => all.map(one => one.label)")
        assert replayed == ["500,000 tokens", "1,000,000 tokens", "2,000,000 tokens"]
        best = "[...document.querySelectorAll('#figure-capacity_curve svg [data-says^=\"best possible: \"]')]"
        figure.get_by_role("checkbox", name="best possible").uncheck()
        assert visit.ask(f"{best}.length") >= 3 and visit.ask(f"{best}.every(e => e.getClientRects().length === 0)")
        box = figure.get_by_role("checkbox", name="GDSF")
        box.focus()
        page.keyboard.press("Space")
        assert not box.is_checked() and "GDSF" not in output.inner_text()
        assert visit.ask(f"{seen}.every(e => e.getClientRects().length === 0)")
        page.keyboard.press("Space")
        assert visit.ask(f"{seen}.every(e => e.getClientRects().length > 0)") and "GDSF" in output.inner_text()
        assert visit.said == [] and [url for url in visit.asked if not url.startswith(("data:", "file:"))] == []


def test_marks_say_their_value_under_the_pointer(chromium, files):
    with Visit(chromium, files["both"], 1280) as visit:
        figure = visit.page.locator("#figure-policy_change")
        assert figure.locator(".reading").inner_text() == "Point at a mark to read its value."
        figure.locator("svg [data-says^='LFU with decay']").hover()
        assert figure.locator(".reading").inner_text() == "LFU with decay −17.4% (−19.0% to −15.9%)"
        assert figure.locator("svg").get_attribute("aria-label") == figure.locator("img").get_attribute("alt")
        assert figure.locator("svg [role], svg [aria-label]").count() == 0  # one picture to a screen reader


def test_a_script_of_anybody_else_does_not_run(chromium, tmp_path):
    """The policy of the page refuses what a log could smuggle in, were it ever to get past the escaping."""
    text = report.render(report_fixture.results())
    attack = "<script>document.title = 'run'</script><img src=x onerror=\"document.title = 'run'\">"
    path = tmp_path / "attacked.html"
    path.write_text(text.replace("</main>", f"{attack}</main>"), encoding="utf-8")
    with Visit(chromium, path, 1280) as visit:
        visit.page.wait_for_timeout(100)
        assert visit.ask("document.title") != "run"
        assert sum("Content Security Policy" in said for said in visit.said) >= 2


def test_paper_shows_the_images_and_none_of_the_controls(chromium, files):
    with Visit(chromium, files["both"], 1280) as visit:
        visit.page.emulate_media(media="print")
        assert visit.ask("[...document.images].every(i => i.getClientRects().length > 0)")
        assert visit.ask("document.querySelectorAll('.controls, .frame, .reading').length") > 5
        assert visit.ask("[...document.querySelectorAll('.controls, .frame, .reading, .hint')].every("
                         "e => e.getClientRects().length === 0)")  # fmt: skip


def test_keyboard_reaches_scrolling_tables_and_links(chromium, files):
    with Visit(chromium, files["both"], 390) as visit:
        visit.page.keyboard.press("Tab")
        assert visit.ask("document.activeElement.className") == "skip"
        hidden = (
            "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth && e.tabIndex < 0)"
        )
        assert visit.ask(hidden + ".length") == 0


@pytest.mark.parametrize("name", ["both", "finance"])
def test_prints_on_a4_with_the_verdict_first(chromium, files, name, tmp_path):
    with Visit(chromium, files[name], 1280) as visit:
        path = tmp_path / "report.pdf"
        visit.page.pdf(path=str(path), prefer_css_page_size=True, print_background=True)
        content = path.read_bytes()
        pages = len(re.findall(rb"/Type\s*/Page[^s]", content))
        assert 2 <= pages <= (9 if name == "both" else 5)
        boxes = set(re.findall(rb"/MediaBox\s*\[([^\]]+)\]", content))
        assert {tuple(round(float(edge)) for edge in box.split()) for box in boxes} == {(0, 0, 595, 842)}
        visit.page.emulate_media(media="print")
        bottom = visit.ask("document.querySelector('#table-before_after').getBoundingClientRect().bottom")
        assert bottom < 1010  # CSS pixels of one A4 page within its margins: 297 mm - 30 mm


def test_grey_print_still_tells_lines_apart(chromium, files):
    """Each named line of the curve differs from every other by dash or by shape, not by colour alone."""
    from kit import charts

    layers = charts.capacity_curve(report_fixture.results()).spec["layer"]
    marks: dict[str, list] = {}
    for mark in (layer["mark"] for layer in layers):
        title, _, part = mark.get("description", "").partition(": ")
        if part in ("line", "mark"):
            marks.setdefault(title, []).append(tuple(mark["strokeDash"]) if part == "line" else mark["shape"])
    looks = [tuple(look) for look in marks.values()]
    assert len(looks) == len(set(looks)) == 7  # six policies and the best possible
