"""The site in a real browser: Chromium, headless, without a network. Skipped where there is none, or no driver."""

import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any
from urllib.parse import urldefrag, urljoin

import matplotlib.pyplot as plt
import nbformat
import pandas as pd
import pytest
import torch
from miniature import ROOT
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from torch.nn.functional import normalize

from pullpush.forces import decompose
from pullpush.lab import claims
from pullpush.losses import support_vector
from pullpush.show import captions, galleries
from pullpush.show.galleries import card, in_grid
from pullpush.show.interactive import force_lab, radius_lab
from pullpush.show.palette import use_style
from pullpush.show.search import retrieve
from pullpush.show.tables import styled
from pullpush.site import build as building

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="no Chromium with its driver")
PAGES = ("intro.html", "01-forces.html", "02-svr.html", "claims.html", "search.html", "404.html")
N, ROW, TAU, SHOWN = 8, 3, 0.1, 5
HOSTILE = ("<script>top.ran = 1</script>", "\"'><img src=x onerror=top.ran=2>", "</script><script>top.ran = 3</script>")
HOSTILE += ("\u202e\u2067turned", "[a](javascript:top.ran=4) `*|", "$\\frac{ $x_", "<style>*{display:none}</style><!--")
HOSTILE += ("a" * 1_000_000,)
INTRO = "# A book\n\nRead [the chapter](01-forces.md).\n\n<!-- interactive: 01-forces -->\n"
AUDIO, TEXT = normalize(torch.randn(2, N, 6, generator=torch.Generator().manual_seed(0)).double(), dim=-1)
WIDE, MIDDLE, NARROW = (1280, 1000), (1000, 1000), (390, 1000)


class Others:
    """Clips whose names and captions would run, hide, turn or stretch the page."""

    name = HOSTILE[1]

    def __len__(self) -> int:
        return len(HOSTILE)

    def captions(self, language: str) -> list[list[str]]:
        return [[text] for text in HOSTILE]

    def audio(self, rows: list[int], **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.ones(len(rows), 1600), torch.full((len(rows),), 1600)


def of_others() -> list[str]:
    """What a page shows of them: galleries, a search, tables, figures to play with and to look at."""
    clips = Others()
    model = SimpleNamespace(parameters=lambda: iter([AUDIO]), encode_text=lambda queries: AUDIO[:1])
    table = pd.DataFrame({HOSTILE[0]: HOSTILE, HOSTILE[-1][:2000]: [[text] for text in HOSTILE]})
    found = [galleries.scenes(clips, range(N)), *(galleries.translations(clips, row) for row in range(N))]
    found += [retrieve(model, clips, AUDIO, {"eng": HOSTILE[0], "fra": HOSTILE[-1]})]
    found += [shape(TEXT, AUDIO, HOSTILE, [ROW]) for shape in (force_lab, radius_lab)]
    with pytest.MonkeyPatch.context() as patch, plt.rc_context():
        patch.setattr(captions, "display", found.append)
        use_style()
        for text in HOSTILE[:-1]:
            fig, ax = plt.subplots()
            ax.plot([0, 1], label=text)
            ax.legend(title=text)
            captions.figure(fig, "2.1", text.replace("$", ""), alt=text)
    return [*(one.data for one in found), styled(table).to_html()]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a site of three pages, built as the book's is: a figure to play with, players, claims."""
    root = tmp_path_factory.mktemp("site")
    ignored = shutil.ignore_patterns("*.md", "measured", "trunks", "paper-tables")
    shutil.copytree(ROOT / "book", root / "book", ignore=ignored)
    (root / "book" / "_toc.yml").write_text(
        "format: jb-book\nroot: intro\nchapters:\n  - file: 01-forces\n  - file: 02-svr\n  - file: claims\n"
    )
    (root / "book" / "intro.md").write_text(INTRO)
    for page in PAGES[1:3]:
        (root / "book" / page.replace("html", "md")).write_text("# Forces\n")
    shutil.copyfile(ROOT / "book" / "claims.md", root / "book" / "claims.md")
    waves = [torch.sin(torch.arange(48_000) * pitch) / 2 for pitch in (0.1, 0.2)]
    table = pd.DataFrame({f"column {i}": [f"a wide number {i}"] for i in range(20)})
    outputs = [
        force_lab(TEXT, AUDIO, [f"caption {i}" for i in range(N)], [ROW], tau=TAU).data,
        in_grid([card(wave, "a hum", "eng") for wave in waves]).data,
        styled(table).to_html(),
    ]
    notebooks = [root / "01-forces.ipynb", root / "02-svr.ipynb"]
    for notebook, shown in zip(notebooks, (outputs, of_others()), strict=True):
        cells = [new_markdown_cell("# Forces\n\nA zebra neighs.\n\n## Wide tables\n\nBelow.")]
        cells += [new_code_cell("1", outputs=[new_output("display_data", {"text/html": one})]) for one in shown]
        cells.append(new_markdown_cell("## The end\n\nBelow."))
        nbformat.write(new_notebook(cells=cells, metadata={"language_info": {"name": "python"}}), notebook)
    shutil.copyfile(ROOT / "executed" / "quick" / "01-forces.claims.csv", root / "01-forces.claims.csv")
    building._gather(root, notebooks, root / "source")
    building._jupyter_book(root / "source", root / "out", log=root / "build.log")
    handler = partial(SimpleHTTPRequestHandler, directory=root / "out" / "_build" / "html")
    handler.func.log_message = lambda *words: None
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for word in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "autoplay-policy=no-user-gesture-required"):
        options.add_argument(f"--{word}")
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_script_timeout(60)
    yield driver
    driver.quit()


def opened(browser: Any, address: str, size: tuple[int, int] = WIDE, *, theme: str = "light") -> Any:
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": size is NARROW},
    )
    browser.get(address)
    browser.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    return browser.execute_script


def waited(script: str) -> str:
    """A script that answers when a condition is met, or false after 20 s."""
    return f"""const [answer] = [...arguments].slice(-1), end = Date.now() + 20000;
    const look = () => ({script}) ? answer(true) : Date.now() > end ? answer(false) : setTimeout(look, 50);
    look()"""


@pytest.mark.parametrize("size", [WIDE, MIDDLE, NARROW], ids=["wide", "middle", "narrow"])
@pytest.mark.parametrize("page", PAGES)
def test_a_page_opens_without_an_error_fits_and_has_one_search(site, browser, page, size):
    browser.get_log("browser")
    run = opened(browser, site + page, size)
    assert browser.execute_async_script(waited("document.readyState === 'complete'"))
    said = [entry["message"] for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    first = "Got invalid theme mode"  # the theme's word on a first visit, when nothing was chosen yet
    assert [one for one in said if first not in one and "favicon.ico" not in one] == []
    assert run("return document.documentElement.scrollWidth") <= size[0], "the page scrolls sideways"
    assert run("return document.title")
    if page not in ("search.html", "404.html"):
        searches = "[...document.querySelectorAll('button.search-button__button, .search-button, input[type=search]')]"
        visible = f"return {searches}.filter(e => e.checkVisibility() && !e.closest('#claim-filters')).length"
        assert run(visible) == 1
        run("document.querySelector('.article-header-buttons .search-button').click()")
        assert run("return document.getElementById('pst-search-dialog').open"), "the button opens no search"
        assert run("return document.querySelector('meta[property=\"og:image\"]').content")
        assert run("return document.querySelector('link[rel~=icon]').href")


@pytest.mark.parametrize("page", ["02-svr.html", "search.html?q=turned", "search.html?q=<img+src=x+onerror=top.ran=5>"])
def test_what_others_write_is_shown_and_never_runs(site, browser, page):
    run = opened(browser, site + page, NARROW)
    assert browser.execute_async_script(waited("!location.search || document.querySelector('#search-results h2')"))
    assert run("return document.documentElement.scrollWidth") <= NARROW[0], "the page scrolls sideways"
    end = "Search" if "search" in page else "The end"
    assert end in run("return document.querySelector('main').innerText"), "the page, or its end, is hidden"
    assert run("return top.ran ?? 0") == 0
    assert not run("return document.querySelector('[onerror], [onload], a[href^=\"javascript:top\"]')")


def test_every_link_of_a_page_leads_to_what_is_there(site, browser):
    anchors: dict[str, set[str]] = {}
    links: dict[str, list[str]] = {}
    for page in PAGES:
        run = opened(browser, site + page)
        anchors[site + page] = set(run("return [...document.querySelectorAll('[id]')].map(e => e.id)"))
        links[site + page] = run("return [...document.querySelectorAll('a[href]')].map(e => e.getAttribute('href'))")
    assert any(links.values())
    for page, found in links.items():
        for link in {one for one in found if not one.startswith(("http", "javascript", "mailto"))}:
            address, anchor = urldefrag(urljoin(page, link))
            if address.endswith("library/index.html"):  # 404.html leads to pages that this small book leaves out
                continue
            status = "return fetch(arguments[0], {method: 'HEAD'}).then(r => r.status)"
            assert browser.execute_script(status, address) == 200, f"{page} leads to {link}"
            if anchor and address in anchors:
                assert anchor in anchors[address], f"{page} leads to {link}"


def expected(tau: float, count: int, share: float) -> list[float]:
    """P⁺, ‖pull‖, push along and across û, for the first negatives, from a support vector at a share of the way."""
    rows = [ROW, *[j for j in range(N) if j != ROW][:count]]
    anchor = TEXT[ROW : ROW + 1]
    radius = share * (AUDIO[ROW] - anchor).norm()
    moved = support_vector(anchor, AUDIO[ROW : ROW + 1], radius)
    force = decompose(moved, AUDIO[rows], tau, positive=torch.tensor([0]))
    along = (force.push * force.unit).sum().abs()
    pull = (1 - force.p_positive) / tau
    return [float(x) for x in (force.p_positive, pull, along, (1 - share) * force.perpendicular.norm())]


@pytest.mark.parametrize(("tau", "count", "share"), [(TAU, N - 1, 0.0), (0.05, 5, 0.0), (0.3, 3, 0.4)])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_sliders_move_the_arrows_as_the_forces_say(site, browser, tau, count, share, size):
    run = opened(browser, site + "intro.html", size)
    browser.switch_to.frame(browser.find_element("css selector", "iframe"))
    run(
        """const set = (id, value) => { const e = document.getElementById(id); e.step = "any"; e.value = value;
        e.dispatchEvent(new Event("input")); };
        set("tau", Math.log(arguments[0])); set("count", arguments[1]); set("radius", arguments[2])""",
        tau,
        count,
        share,
    )
    values = [float(v) for v in run("return [...document.querySelectorAll('#numbers td')].map(e => e.dataset.value)")]
    told = expected(tau, count, share)
    assert values[:4] == pytest.approx(told, rel=2e-3, abs=2e-3)
    arrow = run("return +document.querySelector('line[stroke=\"#CC79A7\"]').getAttribute('y2') - 215")
    assert arrow == pytest.approx(300 / 1.6 * told[3] / told[1], rel=5e-3)
    assert run("return document.documentElement.scrollWidth <= innerWidth"), "the frame scrolls sideways"
    assert run("return document.body.offsetHeight <= innerHeight"), "the frame hides its end"
    browser.switch_to.default_content()


def test_players_play_one_at_a_time(site, browser):
    run = opened(browser, site + "01-forces.html")
    assert run("return document.querySelectorAll('audio').length") == 2
    for number in (0, 1):
        run("return document.querySelectorAll('audio')[arguments[0]].play()", number)
        assert browser.execute_async_script(waited(f"document.querySelectorAll('audio')[{number}].currentTime > 0.02"))
    assert run("return [...document.querySelectorAll('audio')].map(e => e.paused)") == [True, False]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_wide_table_scrolls_in_its_frame_and_its_first_column_stays_and_is_read(site, browser, theme):
    run = opened(browser, site + "01-forces.html", NARROW, theme=theme)
    frame = "const frame = document.querySelector('div.scroll'), cell = frame.querySelector('td');"
    assert run(f"{frame} return frame.scrollWidth > frame.clientWidth || cell.closest('table').scrollWidth > 390")
    place = f"{frame} return cell.getBoundingClientRect().x"
    before = run(place)
    run(f"{frame} frame.scrollLeft = 300; cell.closest('table').scrollLeft = 300")
    assert run(place) == pytest.approx(before, abs=2)
    script = f"{frame} const s = getComputedStyle(cell); return [s.color, s.backgroundColor]"
    ink, paper = (sum(map(float, colour.strip("rgba()").split(",")[:3])) for colour in run(script))
    assert abs(ink - paper) > 300, "letters like their ground"


def test_search_finds(site, browser):
    opened(browser, site + "search.html?q=zebra")
    assert browser.execute_async_script(waited("document.querySelector('#search-results li a[href*=\"01-forces\"]')"))


def test_filters_of_claims_filter(site, browser):
    run = opened(browser, site + "claims.html")
    shown = """return [...document.querySelectorAll('#claims tbody tr')].filter(e => e.checkVisibility())
    .map(e => [e.dataset.paper, e.textContent])"""
    assert len(run(shown)) == len(claims.load_all())
    choose = """const form = document.getElementById('claim-filters'); form.elements[arguments[0]].value = arguments[1];
    form.dispatchEvent(new Event('input'))"""
    run(choose, "paper", "glap")
    assert {paper for paper, _ in run(shown)} == {"glap"}
    assert len(run(shown)) == len(claims.load("glap"))
    run(choose, "text", "bias learnable")
    rows = run(shown)
    assert 0 < len(rows) < len(claims.load("glap"))
    assert all("learnable" in text.lower() and "bias" in text.lower() for _, text in rows)
