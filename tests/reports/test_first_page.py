"""Page one of a compliance report: rows, picture, statements, severity, the decision, and the glossary."""

import dataclasses
import math
import re

import pytest
from click.testing import CliRunner

import dpaudit
from dpaudit import reports
from dpaudit.cli import main
from dpaudit.errors import UsageError
from dpaudit.profiles import profile_named
from dpaudit.reports import answers, brief, compliance, first_page, label, rows, words
from dpaudit.reports.document import Facts, Paragraph, SignOffBlock, Table
from dpaudit.reports.dossier import FAILED, Dossier, Line
from dpaudit.reports.drawing import Figure
from dpaudit.reports.html import Linker
from dpaudit.reports.severity import severity_of
from dpaudit.reports.sign_off import read_sign_off, results_digest
from dpaudit.results.model import INTERVALS, LearnedLoss, Power, Severity, WitnessRecord


def page(dossier):
    """The blocks of page one by their kinds."""
    first = compliance.build(dossier).first
    assert [type(block) for block in first if not isinstance(block, Figure)] == [Facts, Paragraph, Table, SignOffBlock]
    return {type(block): block for block in first}


def gaps(*results):
    return dict(page(Dossier.of(*results))[Facts].rows)["What was not tested?"]


def quiet(synthetic, *powers):
    """A result that is not refuted, with a pair of each power."""
    (finding, *_) = synthetic.make("doubles").findings
    findings = [dataclasses.replace(finding, id=f"pair {k}", power=power) for k, power in enumerate(powers)]
    return synthetic.result(findings)


def learned(deciding, known=1.2, allowed=1.0):
    return Power(0.1, 0.9, known, allowed, (LearnedLoss("one threshold", known), LearnedLoss(INTERVALS, deciding)))


def test_page_one_quotes_what_an_audit_learns_of_the_pair_with_the_largest_ratio(synthetic):
    # The last pair is furthest from its limit in the best case, and not in what decides.
    shown = page(Dossier.of(quiet(synthetic, learned(1.4), learned(2.71), learned(1.5, 1.49))))
    missed = shown[Table].rows[0][5]
    assert missed == (
        "about 10% of leaks of 2.71 × the promise in the hardest form that the verdict rests on (90% are found); "
        "more of smaller and of harder ones, and of those in fewer than 10% of answers"
    )
    said = dict(shown[Facts].rows)["What may be missed?"]
    assert said.startswith(f"A{missed[1:]}. ") and "1.2 ×" not in said and "1.5 ×" not in said


def test_the_gravest_results_come_first_and_the_others_are_counted(synthetic):
    quiet = [
        dataclasses.replace(synthetic.make("doubles"), subject={"name": f"quiet {k}", "fingerprint": str(k)})
        for k in range(15)
    ]
    table = page(Dossier.of(*quiet, synthetic.make("single")))[Table]
    assert len(table.rows) == first_page.MAX_ROWS and table.omitted == 16 - first_page.MAX_ROWS
    assert table.rows[0][0] == "city release: privacy"


@pytest.mark.parametrize("ratio", [math.inf, 1e9, 0.0, math.nan])
def test_a_ratio_without_a_place_on_the_axis_is_drawn_within_the_picture(synthetic, ratio):
    verdict = "violated" if ratio > 1.0 else "not_refuted"
    finding = synthetic.finding("a", "b", 1.0, verdict=verdict, ratio_lower=ratio)
    figure = page(Dossier.of(synthetic.result([finding]))).get(Figure)
    assert (figure is None) == math.isnan(ratio)
    if figure is not None:
        for drawing, width in ((figure.wide, 900.0), (figure.narrow, 358.0)):
            rects = re.findall(r'<rect x="([\d.]+)" y="[\d.]+" width="([\d.]+)"', drawing)
            assert rects and all(float(x) + float(wide) <= width for x, wide in rects)


def test_nothing_is_said_to_be_clear_of_which_something_was_found_beside_the_verdict(synthetic):
    leaking = dataclasses.replace(synthetic.make("doubles"), subject={"name": "leaking", "fingerprint": "l"})
    clear = dataclasses.replace(synthetic.make("learned"), subject={"name": "clear", "fingerprint": "c"})
    text = gaps(synthetic.make("single"), leaking, clear)
    assert "Nothing was found against “clear”: whether" in text and "“leaking”" not in text


@pytest.mark.parametrize(
    "make", [lambda s: s.make("single"), lambda s: s.check(), lambda s: s.utility(), lambda s: s.scores()]
)
def test_a_report_on_one_result_explains_its_links_and_says_its_answers_once(synthetic, make):
    page = reports.render(make(synthetic), "html")
    linked = set(re.findall(r'href="#(term-[^"]+)"', page))
    assert linked and all(f'id="{term}"' in page for term in linked)
    assert "what it may have missed" not in page  # the table, whose one row would say it again
    assert f"Written by dpaudit {dpaudit.__version__} from saved results" in page  # not the version that ran


def test_a_mechanism_that_was_tested_on_fewer_pairs_than_another_is_named(synthetic):
    wide = synthetic.result([synthetic.finding("a", "b", 0.5), synthetic.finding("a", "c", 0.5)])
    narrow = dataclasses.replace(wide, findings=wide.findings[:1], subject={"name": "narrow", "fingerprint": "n"})
    text = gaps(wide, narrow)
    assert "“narrow” was tested on 1 of the 2 pairs that another mechanism with its promise was tested on." in text
    assert "Nothing was found against “city release” and “narrow”" not in text  # nothing was found broken at all
    assert text.endswith("Decide whether these gaps are acceptable. Decide on each mechanism below.")
    assert text.count("was tested on 1") == 1
    elsewhere = dataclasses.replace(narrow, findings=(synthetic.finding("d", "e", 0.5),))  # not one of them
    other = dataclasses.replace(narrow, claim="another claim")
    assert "was tested on 1" not in gaps(wide, elsewhere, other)


def test_results_at_the_default_of_the_compliance_profile_are_of_full_confidence(synthetic):
    profile = profile_named("compliance")
    assert profile.confidence == answers.TOGETHER == 0.999
    quiet = dataclasses.replace(synthetic.make("doubles"), confidence=0.9995)
    two = Dossier.of(quiet, dataclasses.replace(quiet, seed=1))
    text = dict(page(two)[Facts].rows)["How sure is that?"]
    assert "at most 0.1%" in text and "lower confidence" not in text


QUESTIONS = (
    "May it be released?",
    "What was tested?",
    "What was promised?",
    "How sure is that?",
    "What may be missed?",
    "What was not tested?",
)


@pytest.mark.parametrize("name", ["violated", "not_refuted", "inconclusive", "error", "empty", "all pairs", "sides"])
def test_every_report_of_an_audit_answers_six_questions_before_anything_else(synthetic, name):
    result = synthetic.make(name)
    told = answers.answers(Dossier.alone(result))
    assert tuple(question for question, _ in told.rows) == QUESTIONS and all(text.strip() for _, text in told.rows)
    assert compliance.document_of(result).first[0] == told
    shown = [block for block in brief.page(result, None) if isinstance(block, Facts) and block.kind == "statements"]
    assert shown == [told]  # in a terminal too, with every item that nobody looked at


def test_low_bits_that_a_check_found_are_named_and_checks_of_the_code_alone_ask_for_no_more_than_a_mend(synthetic):
    """A failed check of low bits speaks of the promise; before, page one said that none was found broken."""
    release = {}
    for name in ("floating_point", "refuses_nan"):
        records = [one for one in synthetic.check().records if one.status == "not_refuted"]
        failed = dataclasses.replace(records[0], name=name, status="violated")
        result = dataclasses.replace(synthetic.check(), records=(failed, *records))
        release[name] = dict(answers.answers(Dossier.of(result)).rows)["May it be released?"]
    assert "those of “city release” break the promise" in release["floating_point"]
    assert "low bits" not in release["refuses_nan"] and release["refuses_nan"].endswith("mended and checked again.")


@pytest.mark.parametrize("others", [(), ("learned",), ("inconclusive",), ("error",), ("single",), ("check",)])
def test_headline_and_answer_come_from_one_judgement(synthetic, others):
    """Before, "no broken promise found" and a tick stood above "Not yet" where low bits leaked."""
    made = [synthetic.check() if name == "check" else synthetic.make(name) for name in others]
    dossier = Dossier.of(synthetic.make("doubles"), *made)
    headline, release = first_page.headline(dossier), dict(answers.answers(dossier).rows)["May it be released?"]
    assert "low bits" in (headline if others != ("single",) else release)
    assert release.startswith("No. " if others == ("single",) else "Not yet. Verdicts read outputs as real numbers.")
    assert "no broken promise" not in headline and "No promise was found broken" not in release
    assert "✗ Broken in low bits, as doubles" in str(page(dossier)[Table].rows)
    assert not label.head(dossier).startswith("✓")


# --- Severity --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "grade"), [(1.01, "marginal"), (1.25, "marginal"), (1.2501, "clear"), (9.9, "clear"), (10.0, "severe"),
                         (1e300, "severe")]
)  # fmt: skip
def test_a_grade_compares_the_proven_loss_with_the_precision_of_the_audit(synthetic, ratio, grade):
    # The synthetic audit would have found 1.25 nats of a promise of 1.
    finding = synthetic.finding(ratio=ratio, mode="fixed")
    graded = severity_of(synthetic.result([finding], mode="fixed"))
    assert (graded.grade, graded.is_least) == (grade, False) and graded.place.endswith(f" of 3, {grade}")


def test_an_audit_that_stopped_at_the_first_proof_knows_the_least_grade_alone(synthetic):
    graded = severity_of(synthetic.result([synthetic.finding(ratio=1.01)]))
    assert graded.is_least and graded.place == "at least 1 of 3, marginal"
    further = synthetic.finding(ratio=1.01)
    graded = severity_of(synthetic.result([dataclasses.replace(further, severity=Severity(100, 12.0))]))
    assert (graded.grade, graded.is_least, graded.ratio) == ("severe", False, 12.0)


@pytest.mark.parametrize(
    ("correct", "wrong", "grade"),
    [(100, 0, "severe"), (99, 0, "marginal"), (9900, 100, "severe"), (980, 20, "marginal")],
)
def test_a_rule_that_is_hardly_ever_wrong_is_severe_and_called_an_observation(synthetic, correct, wrong, grade):
    witness = WitnessRecord("Looks at the last bit.", {}, correct, wrong, 0, {"epsilon": 1.0})
    graded = severity_of(synthetic.result([synthetic.finding(ratio=1.01, witness=witness)]))
    assert graded.grade == grade and ("observed, without an error rate" in graded.reason) == (grade == "severe")


def test_where_nothing_may_leak_the_loss_itself_is_graded(synthetic):
    for loss, grade in ((0.05, "marginal"), (0.5, "clear"), (1.0, "severe")):
        finding = synthetic.finding(
            ratio=2.0, budget=0.0, parameter_lower=loss, epsilon_lower=loss, ratio_lower=math.inf, power=None
        )
        assert severity_of(synthetic.result([finding])).grade == grade


@pytest.mark.parametrize(("budget", "said"), [(0.0, "breaks its promise."), (1e-6, "at least 500,000 times what was")])
def test_a_promise_of_next_to_nothing_is_not_said_to_be_beyond_every_epsilon(synthetic, budget, said):
    loss = {"parameter_lower": 0.5, "epsilon_lower": 0.5, "ratio_lower": 0.5 / budget if budget else math.inf}
    result = synthetic.result([synthetic.finding(ratio=2.0, budget=budget, power=None, **loss)])
    text = answers.release_sentence([rows.line_of(result)])
    assert said in text and "no larger epsilon" not in text  # an epsilon of 0.6 may cover it


def test_nothing_violated_has_no_severity(synthetic):
    assert all(severity_of(synthetic.make(name)) is None for name in ("not_refuted", "error", "inconclusive", "empty"))
    unknown = synthetic.finding(ratio=1.05, power=Power(0.1, 0.9, math.inf, 1.0))
    assert severity_of(synthetic.result([unknown])).grade == "marginal"


def flips(data, size, rng):
    """A bit whose laws differ by 0.4 in total variation, where 0.1 is allowed; the loss itself is ln(7 / 3)."""
    return (rng.random(size) < 0.3 + 0.4 * data).astype(int)


def test_what_no_larger_epsilon_covers_has_no_ratio():
    claim = dpaudit.FDP([(0.0, 0.9), (0.9, 0.0), (1.0, 0.0)])
    # False alarm 5%, fixed seed; the claim is broken, and found by nearly all audits of this size.
    result = dpaudit.audit(flips, claim, [(0, 1)], samples=8_000, mode="fixed", seed=1, severity=False)
    assert result.verdict == "violated"
    graded = severity_of(result)
    assert (graded.grade, graded.ratio, graded.reason) == ("clear", math.inf, words.said("severity.unscaled"))
    assert rows.line_of(result).severity.place.endswith("2 of 3, clear")


# --- The decision ----------------------------------------------------------------------------------------------------

SIGNED = 'name = "A. Person"\nrole = "Officer"\ndate = 2026-11-25\ndecision = "reject"\n'


def test_a_decision_fills_the_block_and_an_empty_one_prints_what_to_bind_it_to(synthetic, tmp_path):
    dossier = synthetic.dossier()
    empty = page(dossier)[SignOffBlock]
    assert empty.chosen == (("city release", "", ""),) and results_digest(dossier) in empty.note
    (tmp_path / "s.toml").write_text(SIGNED + f'results = "{results_digest(dossier)}"\n')
    signed = dataclasses.replace(dossier, sign_off=read_sign_off(tmp_path / "s.toml", dossier))
    block = page(signed)[SignOffBlock]
    assert block.chosen == (("city release", "reject", ""),) and dict(block.rows)["Name"] == "A. Person"
    assert "made on exactly these results" in block.note
    for format in ("html", "md"):
        text = reports.render(signed, format, "compliance")
        assert "A. Person" in text.replace("\\.", ".") and ("☒ Reject" in text or "- [x] reject" in text)


def two_releases(synthetic):
    """A report about a broken mechanism and one without a finding."""
    quiet = dataclasses.replace(synthetic.make("doubles"), subject={"name": "quiet release", "fingerprint": "q"})
    return Dossier.of(quiet, synthetic.make("single"))


def test_a_broken_mechanism_that_was_accepted_is_named_and_no_mechanism_goes_without_a_decision(synthetic, tmp_path):
    dossier = two_releases(synthetic)
    (tmp_path / "s.toml").write_text(SIGNED.replace("reject", "accept"))
    signed = dataclasses.replace(dossier, sign_off=read_sign_off(tmp_path / "s.toml", dossier))
    assert page(signed)[SignOffBlock].note.endswith("“city release” was accepted although a promise was found broken.")
    alone = SIGNED.replace('decision = "reject"\n', '[mechanisms."city release"]\ndecision = "reject"\n')
    (tmp_path / "s.toml").write_text(alone)
    with pytest.raises(UsageError, match="decision must be stated for every mechanism, got none for 'quiet release'"):
        read_sign_off(tmp_path / "s.toml", dossier)
    both = alone + '[mechanisms."quiet release"]\ndecision = "accept"\n'
    (tmp_path / "s.toml").write_text(both)
    read = read_sign_off(tmp_path / "s.toml", dossier)
    assert read.decision == "" and read.about("quiet release").decision == "accept"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("nam = 'x'", "key must be one of name, role, date, decision, conditions, results, mechanisms, got 'nam' at "),
        (SIGNED.replace('"A. Person"', '" "'), "name must say something, got ' ' at "),
        (SIGNED.replace("2026-11-25", '"today"'), "date must be a date such as 2026-01-31, got 'today' at "),
        (
            SIGNED.replace("reject", "ok"),
            "decision must be one of accept, accept with conditions, reject, got 'ok' at ",
        ),
        (SIGNED.replace("reject", "accept with conditions"), "conditions must be stated to accept with conditions"),
        (SIGNED + 'conditions = "x"', "conditions must be left out to reject, got 'x'"),
        (SIGNED + 'results = "00"', "results must be the digest of these results, .*, got '00' at "),
        (SIGNED + "results = 3", "results must be a text of at most 4,000 characters, got 3 at "),
        ("name = ", "sign_off must be TOML"),
        (SIGNED + "mechanisms = 1", "mechanisms must be a table, got 1 at "),
        (
            SIGNED + '[mechanisms.other]\ndecision = "accept"',
            r"key of \[mechanisms\] must be one of city release, got 'other' at ",
        ),
        (SIGNED + '[mechanisms]\n"city release" = 2', "mechanisms.city release must be a table, got 2 at "),
        (
            SIGNED + '[mechanisms."city release"]\nwhy = 1',
            r"key of \[mechanisms.city release\] must be one of decision, conditions, got 'why' at ",
        ),
        (SIGNED + '[mechanisms."city release"]\n', "mechanisms.city release.decision must be one of .*, got None at "),
        (
            SIGNED + '[mechanisms."city release"]\ndecision = "accept with conditions"\nconditions = 4',
            "mechanisms.city release.conditions must be a text of at most 4,000 characters, got 4 at ",
        ),
    ],
)
def test_a_decision_that_is_none_is_refused_with_its_place(synthetic, tmp_path, content, message):
    (tmp_path / "s.toml").write_text(content)
    with pytest.raises(UsageError, match=message):
        read_sign_off(tmp_path / "s.toml", synthetic.dossier())


def test_the_command_reads_a_decision_about_the_results_as_they_were_saved(synthetic, project):
    synthetic.make("single").save("audit.json")
    (project / "s.toml").write_text(SIGNED)
    arguments = ["report", "audit.json", "--sign-off", "s.toml", "--report", "md", "--out", "o"]
    shown = CliRunner().invoke(main, [*arguments, "--profile", "compliance", "--redact"])
    assert shown.exit_code == 0, shown.output
    assert "x] reject" in (project / "o" / "compliance.md").read_text()
    assert "sign_off must be given with --profile compliance" in CliRunner().invoke(main, arguments).output


# --- The glossary ----------------------------------------------------------------------------------------------------


def test_a_linked_text_is_escaped_and_a_term_within_another_is_not_linked():
    linked = Linker()
    assert linked("<b>privacy loss</b>") == '&lt;b&gt;<a class="term" href="#term-epsilon">privacy loss</a>&lt;/b&gt;'
    assert linked("the loss") == "the loss" and linked("misaudited") == "misaudited"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([("privacy", "violated", "", None), ("errors", "inconclusive", "", None)], "No. A promise is broken. “one”"),
        ([("behaviour", "violated", FAILED, None)], "Not yet. No promise of privacy was found broken, but “one” fails"),
        (
            [("privacy", "inconclusive", "", None), ("errors", "not_refuted", "", None)],
            "Not yet. No promise was found broken, but 1 test of 2 gave no full answer.",
        ),
        ([("privacy", "error", "", None)], "Not yet. No promise was found broken, but the test gave no full answer"),
        ([("privacy", "not_refuted", "", 1.6)], "Nothing that was found speaks against it. That is no proof: whoever"),
        ([("privacy", "not_refuted", "", math.inf)], "Nothing that was found speaks against it, but a loss of any"),
        ([("errors", "not_refuted", "", None)], "Nothing that was found speaks against it. That is no proof: whoever"),
        ([("proof", "not_refuted", "", None)], "Nothing speaks against it: every promise is proved for the pairs that"),
    ],
)
def test_whether_it_may_be_released_is_said_by_rule(lines, said):
    found = [Line("one", kind, "", "", verdict, "", "", blind=blind, word=word) for kind, verdict, word, blind in lines]
    assert answers.release_sentence(found).startswith(said)
