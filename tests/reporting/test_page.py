from __future__ import annotations

import base64
import hashlib
import json
import re

from selectolax.lexbor import LexborHTMLParser
from support.hostile import ORDERS
from support.reports import facts
from support.studies import reported

from raggs.evaluation.analyses.comparisons import Comparisons
from raggs.reporting import REGISTRY
from raggs.reporting.page import TermLinks, embedded, report_page
from raggs.reporting.sections.results import LOWER, SystemsSection


def test_the_policy_allows_the_one_style_and_the_one_script_and_no_address():
    tree = LexborHTMLParser(report_page(facts()))
    policy = tree.css_first("meta[http-equiv=Content-Security-Policy]").attributes["content"] or ""
    for tag in ("style", "script:not([type])"):
        (found,) = tree.css(tag)
        digest = base64.b64encode(hashlib.sha256(found.text().encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert not tree.css("[style], [onclick], link, iframe, img[src^=http]")
    assert {(link.attributes["href"] or "")[:1] for link in tree.css("[href]")} == {"#"}


def test_a_section_has_a_name_a_title_a_question_and_a_template():
    for name in REGISTRY:
        kind = REGISTRY.load(name)
        assert name == kind.NAME
        assert kind.TITLE
        assert (REGISTRY.summary(name)).endswith("?")
        assert kind.resource("html")
        assert bool(kind.resource("js")) <= kind.SCRIPTED


def test_the_navigation_leads_to_every_section_that_is_there():
    tree = LexborHTMLParser(report_page(facts()))
    links = [link.attributes["href"] for link in tree.css("nav a")]
    assert links == [f"#{each.attributes['id']}" for each in tree.css("main > section")]
    assert links[0] == "#decision"


def test_json_in_the_page_is_no_markup_and_comes_back_whole():
    hostile = {"</script><script>alert(1)</script>": [*ORDERS, "a & b", "<!--", "]]>"]}
    text = embedded(hostile)
    assert not set("<>&\u202e\u2028") & set(text)
    assert json.loads(text) == json.loads(
        json.dumps(hostile).replace("\\u202e", "\\\\u202e").replace("\\u202c", "\\\\u202c")
    )


def test_the_same_facts_give_the_same_bytes():
    assert report_page(facts()) == report_page(facts())


def test_no_two_sections_style_the_same_class():
    """Styles of all sections stand in one page: a class of one must not dress another's by chance."""
    owners: dict[str, set[str]] = {}
    for name in REGISTRY:
        for found in re.findall(r"(?:^|[},])\s*\.([\w-]+)", REGISTRY.load(name).resource("css")):
            owners.setdefault(found, set()).add(name)
    assert {each: names for each, names in owners.items() if len(names) > 1} == {}


def test_terms_are_linked_once_a_section_and_only_in_the_texts_of_raggs() -> None:
    links = TermLinks({"kappa": "agreement <beyond> chance", "RA-nWG": "gain", "canaries": "control items"})
    found = links.link('<p title="kappa">kappa and Kappa; <code>kappa</code> <bdi>ra-nwg</bdi> ra-nwg@10 scanaries</p>')
    link = '<a class="term" href="#term-{}" title="{}">{}</a>'
    assert found == (
        f'<p title="kappa">{link.format("kappa", "Agreement &lt;beyond&gt; chance.", "kappa")} and Kappa; '
        f"<code>kappa</code> <bdi>ra-nwg</bdi> {link.format('RA-nWG', 'Gain.', 'ra-nwg')}@10 scanaries</p>"
    )
    assert [name for name, _ in links.used] == ["kappa", "RA-nWG"]
    assert "term-kappa" in links.link("<p>kappas</p>"), "once a section, and plurals too"
    assert 'title="Gain."' in TermLinks({"x": "gain. See docs/a.md."}).link("<p>x</p>"), "no link to another page"
    assert TermLinks({}).link("<p>kappa</p>") == "<p>kappa</p>"


def test_the_table_of_systems_says_where_lower_is_better():
    report = reported(Comparisons("poor"))
    first, *others = report.measures
    lower = report.model_copy(update={"higher_is_better": {first: False, **dict.fromkeys(others, True)}})
    part = SystemsSection().data(facts(lower))
    assert part is not None and part.document.scores.table is not None
    marks = [row[0].mark for row in part.document.scores.table.rows]
    assert marks == [LOWER, *[""] * len(others)]
    page = LexborHTMLParser(report_page(facts(lower)))
    signs = next(each for each in page.css("p.soft") if each.text().endswith("bold: the best system"))
    assert "interval" in signs.text()
