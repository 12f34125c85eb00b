"""One function a claim: published numbers in, true, false, depends or untestable out.

A function is entered under the name of its claim in `claims.toml`, and gives the numbers that the
catalogues' sentence `study.claim.<name>.finds` shows. Claims that no number decides have none:
what is found of them stands in the table. A claim about a printed number is true if it comes out
in all its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations
from statistics import NormalDist, fmean, pstdev

from kinprint.measure.sigma import effect_size
from kinprint.studies.reproduction.claims import Finding, Heatmap, Numbers, Outcome

IN, POST = "norm_in", "norm_post_attn"
LAYERS = range(46)  # those that both models have
TENS = (10, 20, 30, 40)
THREE = ("solar", "glm", "phi")
PAIRS = (("solar", "glm"), ("solar", "phi"), ("glm", "phi"))
CHANNELS = 4096
KINDS = ("moe-moe", "moe-dense", "dense-dense")

Check = Callable[[Numbers], Finding]
CHECKS: dict[str, Check] = {}


def check(name: str) -> Callable[[Check], Check]:
    """Enter a function as the check of the claim of that name."""

    def entered(function: Check) -> Check:
        CHECKS[name] = function
        return function

    return entered


def _comes_out(value: float, said: float, digits: int, rounded: bool = False) -> bool:
    """Whether a printed number is that value; `rounded` numbers behind it leave half a place."""
    places = 1.0 if rounded else 0.5
    return abs(value - said) <= places * 0.1**digits + 1e-12


def _true_if(holds: bool, **fields: object) -> Finding:
    return Finding(Outcome.TRUE if holds else Outcome.FALSE, fields)


def same_layer(known: Numbers, measure: str, role: str, one: str, other: str, layer: int) -> float:
    """A measure of two models at the same layer."""
    return known[f"{measure}/{role}/{one}[{layer}]/{other}[{layer}]"]


def by_layer(known: Numbers, measure: str, role: str) -> list[float]:
    """Solar against GLM, layer by layer."""
    return [same_layer(known, measure, role, "solar", "glm", layer) for layer in LAYERS]


def within_model(
    known: Numbers, measure: str, role: str, model: str, one: int, other: int
) -> float:
    """A measure of two layers of one model."""
    return known[f"{measure}/{role}/{model}[{one}]/{model}[{other}]"]


def from_layer_zero(known: Numbers, model: str) -> list[float]:
    """Cosines of layer 0 with layers 10 to 40 of the same model."""
    return [within_model(known, "cosine", IN, model, 0, layer) for layer in TENS]


def _between(known: Numbers) -> list[float]:
    return [same_layer(known, "cosine", IN, "solar", "glm", layer) for layer in TENS]


def _three_models(known: Numbers, measure: str, roles: Iterable[str]) -> list[float]:
    """All pairs of the three models of vs-phi at the same layers."""
    return [
        same_layer(known, measure, role, one, other, layer)
        for role in roles
        for layer in (10, 20, 30)
        for one, other in PAIRS
    ]


def _controls(known: Numbers) -> list[float]:
    """Pairs at layer 10 that nobody in the dispute calls related."""
    pairs = [("solar", "phi"), ("glm", "phi")]
    pairs += [(model, "mixtral") for model in THREE]
    return [same_layer(known, "cosine", IN, one, other, 10) for one, other in pairs]


# --- the derivation report ---


@check("derived")
def _derived(known: Numbers) -> Finding:
    norms = by_layer(known, "pearson", IN) + by_layer(known, "pearson", POST)
    return Finding(Outcome.UNTESTABLE, {"vectors": len(norms), "pearson": fmean(norms)})


@check("within")
def _within_baseline(known: Numbers) -> Finding:
    glm, solar = (fmean(from_layer_zero(known, model)) for model in ("glm", "solar"))
    holds = _comes_out(glm, known.published["baseline/within_glm_mean"], 3)
    holds = holds and _comes_out(solar, known.published["baseline/within_solar_mean"], 3)
    return _true_if(holds, glm=glm, solar=solar)


@check("between")
def _between_models(known: Numbers) -> Finding:
    mean = fmean(_between(known))
    return _true_if(_comes_out(mean, known.published["baseline/cross_mean"], 3), mean=mean)


@check("expected-if-independent")
def _expected_if_independent(known: Numbers) -> Finding:
    found = _controls(known)
    return _true_if(max(found) < 0.5, pairs=len(found), low=min(found), high=max(found))


@check("layer-ten")
def _layer_ten(known: Numbers) -> Finding:
    known = known.as_published()
    at_ten, *_ = _between(known)
    return _true_if(_comes_out(at_ten, known.published["baseline/cross_mean"], 3), value=at_ten)


@check("sigma")
def _effect_size(known: Numbers) -> Finding:
    pair, glm = _between(known), from_layer_zero(known, "glm")
    fair = [within_model(known, "cosine", IN, "glm", *layers) for layers in ((10, 20), (20, 30))]
    baselines = {"glm": glm, "solar": from_layer_zero(known, "solar"), "fair": fair}
    fields = {name: effect_size(values, pair).sigma for name, values in baselines.items()}
    return Finding(Outcome.DEPENDS, fields)


@check("p-value")
def _tail(known: Numbers) -> Finding:
    effect = effect_size(from_layer_zero(known, "glm"), _between(known))
    fields = {"exponent": math.ceil(effect.log10_p), "orders": round(1 / effect.least_p)}
    return Finding(Outcome.FALSE, fields)


@check("other-layer")
def _other_layer(known: Numbers) -> Finding:
    value = known[f"cosine/{IN}/solar[10]/glm[20]"]
    same = same_layer(known, "cosine", IN, "solar", "glm", 10)
    others = known.published["decay/off_diagonal_mean"]
    return _true_if(_comes_out(value, 0.38, 2), value=value, same=same, others=others)


@check("norm-means")
def _norm_means(known: Numbers) -> Finding:
    first, second = (fmean(by_layer(known, "cosine", role)) for role in (IN, POST))
    holds = _comes_out(first, known.published[f"tensor-types/mean_cosine/{IN}"], 3)
    holds = holds and _comes_out(second, known.published[f"tensor-types/mean_cosine/{POST}"], 3)
    return _true_if(holds, input=first, post=second)


@check("matrix-means")
def _matrix_means(known: Numbers) -> Finding:
    known = known.as_published()
    first = {"k": 0, "v": 0, "router": 1}
    means = {
        role: fmean(same_layer(known, "cosine", role, "solar", "glm", at) for at in LAYERS[start:])
        for role, start in first.items()
    }
    said = {role: known.published[f"tensor-types/mean_cosine/{role}"] for role in means}
    holds = all(_comes_out(mean, said[role], 3) for role, mean in means.items())
    return Finding(Outcome.TRUE if holds else Outcome.DEPENDS, means)


@check("norms-kept")
def _norms_kept(known: Numbers) -> Finding:
    ratios = [
        known[f"mean/{role}/glm[{layer}]"] / known[f"mean/{role}/solar[{layer}]"]
        for role in (IN, POST)
        for layer in LAYERS
    ]
    fields = {
        "input": fmean(by_layer(known, "pearson", IN)),
        "post": fmean(by_layer(known, "pearson", POST)),
        "low": min(ratios),
        "high": max(ratios),
        "derived": known.stated["revision/derived"][1],
    }
    return Finding(Outcome.FALSE, fields)


@check("embeddings")
def _embeddings(known: Numbers) -> Finding:
    fields = {"mean": known["embeddings/mean_cosine"], "base": known["embeddings/baseline_mean"]}
    return Finding(Outcome.DEPENDS, fields)


@check("all-near-zero")
def _all_near_zero(known: Numbers) -> Finding:
    found = [same_layer(known, "cosine", IN, "glm", "phi", layer) for layer in (10, 20, 30)]
    return _true_if(max(found) < 0.5, low=min(found), high=max(found))


@check("first-layer")
def _first_layer(known: Numbers) -> Finding:
    glm, solar = (fmean(from_layer_zero(known, model)) for model in ("glm", "solar"))
    phi = [within_model(known, "cosine", IN, "phi", 0, layer) for layer in (15, 20)]
    value = by_layer(known, "cosine", IN)[0]
    fields = {"value": value, "glm": glm, "solar": solar, "phi": min(phi)}
    return Finding(Outcome.DEPENDS, fields)


@check("layer-five")
def _layer_five(known: Numbers) -> Finding:
    cosines = dict(enumerate(by_layer(known, "cosine", IN)))
    lowest = min((layer for layer in cosines if layer >= 5), key=cosines.__getitem__)
    return _true_if(cosines[lowest] >= 0.95, layer=lowest, value=cosines[lowest])


@check("layer-forty")
def _layer_forty(known: Numbers) -> Finding:
    least = min(by_layer(known, "cosine", IN)[40:])
    return _true_if(least >= 0.99, value=least)


@check("chance-rejected")
def _chance_rejected(known: Numbers) -> Finding:
    found = _controls(known)
    pair = same_layer(known, "cosine", IN, "solar", "glm", 10)
    return Finding(Outcome.FALSE, {"pair": pair, "high": max(found)})


@check("mean-of-norms")
def _mean_of_norms(known: Numbers) -> Finding:
    cosines = by_layer(known, "cosine", IN) + by_layer(known, "cosine", POST)
    shuffled = [
        same_layer(known, "shuffled_cosine", role, "solar", "glm", layer)
        for role in (IN, POST)
        for layer in LAYERS
    ]
    mean = fmean(cosines)
    holds = _comes_out(mean, known.published["tensor-types/mean_cosine/norms"], 3)
    return _true_if(holds, mean=mean, shuffled=fmean(shuffled))


@check("attention-retrained")
def _attention_retrained(known: Numbers) -> Finding:
    others = [
        abs(same_layer(known, "cosine", role, one, "phi", layer))
        for role in ("k", "v")
        for one in ("solar", "glm")
        for layer in (10, 20, 30)
    ]
    return Finding(Outcome.DEPENDS, {"high": max(others)})


@check("zero-null")
def _zero_null(known: Numbers) -> Finding:
    shuffled = same_layer(known, "shuffled_cosine", POST, "solar", "glm", 40)
    fields = {"random": known.stated["report/random_cosine"], "shuffled": shuffled}
    return Finding(Outcome.FALSE, fields)


# --- vs-phi ---


@check("above-nine-tenths")
def _above_nine_tenths(known: Numbers) -> Finding:
    least = min(_three_models(known, "cosine", (IN, POST)))
    return _true_if(least >= 0.9, low=least)


@check("then-glm-from-phi")
def _then_glm_from_phi(known: Numbers) -> Finding:
    pair, control = (same_layer(known, "cosine", IN, one, other, 10) for one, other in PAIRS[::2])
    return _true_if(control >= pair, pair=pair, control=control)


@check("mean-difference")
def _mean_difference(known: Numbers) -> Finding:
    known = known.as_published()
    pair, control = (
        same_layer(known, "mean_abs_diff", IN, one, other, 10) for one, other in PAIRS[::2]
    )
    said = known.stated["vs-phi/mean_abs_diff/glm[10]/phi[10]"]
    exact = _comes_out(control, said, 4)
    outcome = Outcome.FALSE if control >= pair else Outcome.TRUE if exact else Outcome.DEPENDS
    return Finding(outcome, {"pair": pair, "control": control, "said": said})


@check("elementwise")
def _elementwise(known: Numbers) -> Finding:
    pearson = same_layer(known, "pearson", IN, "solar", "glm", 10)
    distance = same_layer(known, "relative_l2", IN, "solar", "glm", 10)
    return _true_if(abs(pearson) < 0.1, pearson=pearson, distance=distance)


@check("mixed-layers")
def _mixed_layers(known: Numbers) -> Finding:
    found = _mixed(known, "cosine")
    return _true_if(min(found) >= 0.9, low=min(found), high=max(found))


@check("mixed-difference")
def _mixed_difference(known: Numbers) -> Finding:
    known = known.as_published()
    pair, _, control = _mixed(known, "mean_abs_diff")
    said = [
        known.stated[f"vs-phi/mean_abs_diff/{places}"]
        for places in ("solar[10]/glm[20]", "glm[20]/phi[30]")
    ]
    exact = _comes_out(pair, said[0], 4) and _comes_out(control, said[1], 4)
    outcome = Outcome.FALSE if control >= pair else Outcome.TRUE if exact else Outcome.DEPENDS
    return Finding(outcome, {"pair": pair, "control": control})


def _mixed(known: Numbers, measure: str) -> list[float]:
    places = {"solar": 10, "glm": 20, "phi": 30}
    return [
        known[f"{measure}/{IN}/{one}[{places[one]}]/{other}[{places[other]}]"]
        for one, other in PAIRS
    ]


@check("within-not-low")
def _within_not_low(known: Numbers) -> Finding:
    return Finding(
        Outcome.DEPENDS,
        {
            "low": min(_inside(known, "cosine", IN)),
            "glm": fmean(from_layer_zero(known, "glm")),
            "solar": fmean(from_layer_zero(known, "solar")),
        },
    )


def _inside(known: Numbers, measure: str, role: str) -> list[float]:
    """Layers 10, 20 and 30 of each of three models with each other."""
    layers = combinations((10, 20, 30), 2)
    return [within_model(known, measure, role, model, *two) for two in layers for model in THREE]


@check("distance-with-depth")
def _distance_with_depth(known: Numbers) -> Finding:
    def farthest(measure: str, pick: Callable[[Iterable[float]], float]) -> bool:
        """Whether layers 10 and 30 are the least alike in each model."""
        return all(
            within_model(known, measure, POST, model, 10, 30)
            == pick(
                within_model(known, measure, POST, model, *two)
                for two in combinations((10, 20, 30), 2)
            )
            for model in THREE
        )

    grows, falls = farthest("mean_abs_diff", max), farthest("cosine", min)
    near = min(within_model(known, "cosine", POST, model, 10, 20) for model in THREE)
    far = max(within_model(known, "cosine", POST, model, 10, 30) for model in THREE)
    outcome = Outcome.FALSE if not grows or falls else Outcome.TRUE
    return Finding(outcome, {"near": near, "far": far})


@check("little-information")
def _little_information(known: Numbers) -> Finding:
    fields = {
        "pair": fmean(by_layer(known, "pearson", IN)),
        "derived": known.stated["revision/derived"][1],
        "chance": 1 / math.sqrt(CHANNELS - 1),
    }
    return Finding(Outcome.DEPENDS, fields)


@check("starts-at-one")
def _starts_at_one(known: Numbers) -> Finding:
    means = [known[f"mean/{IN}/{model}[{at}]"] for model in ("solar", "glm") for at in LAYERS]
    return Finding(Outcome.DEPENDS, {"low": min(means), "high": max(means)})


@check("size-measures")
def _size_measures(known: Numbers) -> Finding:
    values = {pair: same_layer(known, "mean_abs_diff", POST, *pair, 20) for pair in PAIRS}
    fields = {
        "near": values["solar", "phi"],
        "far": values["solar", "glm"],
        "pearson": same_layer(known, "pearson", POST, "solar", "phi", 20),
    }
    return Finding(Outcome.DEPENDS, fields)


@check("within-ninety-nine")
def _within_ninety_nine(known: Numbers) -> Finding:
    found = _inside(known, "cosine", IN) + _inside(known, "cosine", POST)
    return _true_if(min(found) >= 0.985, low=min(found), high=max(found))


@check("first-layer-odd")
def _first_layer_odd(known: Numbers) -> Finding:
    spread = [known[f"std/{IN}/{model}[0]"] / known[f"mean/{IN}/{model}[0]"] for model in THREE[:2]]
    return Finding(Outcome.UNTESTABLE, {"low": min(spread), "high": max(spread)})


@check("post-norm-first-layer")
def _post_norm_first_layer(known: Numbers) -> Finding:
    low = {model: min(known.stated[f"vs-phi/layer_zero/post/{model}"]) for model in THREE[:2]}
    low["phi"] = min(within_model(known, "cosine", POST, "phi", 0, layer) for layer in (15, 20))
    return _true_if(min(low.values()) >= 0.92, **low)


@check("concession")
def _concession(known: Numbers) -> Finding:
    values = known.stated["vs-phi/layer_zero/input/qwen3-14b"]
    return _true_if(min(values) >= 0.9, low=min(values), high=max(values))


@check("toy-networks")
def _toy_networks(known: Numbers) -> Finding:
    ones, random = known.stated["vs-phi/ones"], known.stated["vs-phi/random"]
    return _true_if(min(ones) > 0.999, ones=min(ones), random=max(map(abs, random)))


@check("centred")
def _centred(known: Numbers) -> Finding:
    largest = max(map(abs, _three_models(known, "pearson", (IN, POST))))
    return _true_if(largest < 0.05, high=largest)


@check("phi-closer")
def _phi_closer(known: Numbers) -> Finding:
    closer = [
        same_layer(known, "mean_abs_diff", role, "glm", "phi", layer)
        < same_layer(known, "mean_abs_diff", role, "solar", "glm", layer)
        for role in (IN, POST)
        for layer in (10, 20, 30)
    ]
    outcome = Outcome.TRUE if all(closer) else Outcome.DEPENDS
    return Finding(outcome, {"closer": sum(closer), "of": len(closer)})


@check("keys-and-values")
def _keys_and_values(known: Numbers) -> Finding:
    largest = max(map(abs, _three_models(known, "pearson", ("k", "v"))))
    return _true_if(largest < 0.01, high=largest)


# --- the sanity check ---


@check("positive")
def _positive(known: Numbers) -> Finding:
    found = _controls(known)
    return _true_if(max(found) > 0.95, low=min(found), high=max(found))


@check("shuffled")
def _shuffled(known: Numbers) -> Finding:
    gaps = [
        abs(
            same_layer(known, "shuffled_cosine", role, "solar", "glm", layer)
            - same_layer(known, "cosine", role, "solar", "glm", layer)
        )
        for role in (IN, POST)
        for layer in LAYERS
    ]
    return _true_if(max(gaps) < 0.02, vectors=len(gaps), mean=fmean(gaps), high=max(gaps))


# --- the critique ---


@check("tokenizer-cause")
def _tokenizer_cause(known: Numbers) -> Finding:
    glm, solar = (fmean(from_layer_zero(known, model)) for model in ("glm", "solar"))
    return Finding(Outcome.UNTESTABLE, {"glm": glm, "solar": solar})


@check("points-apart")
def _points_apart(known: Numbers) -> Finding:
    fair = fmean(known[f"fair-baseline/mean/{model}"] for model in ("solar", "glm"))
    cross = same_layer(known, "cosine", IN, "solar", "glm", 10)
    holds = _comes_out(fair - cross, known.published["baselines/fair_minus_cross"], 3)
    return _true_if(holds, points=100 * (fair - cross))


@check("mixtures-alike")
def _mixtures_alike(known: Numbers) -> Finding:
    mixtures, dense = (known[f"architectures/{kind}/mean"] for kind in ("moe-moe", "dense-dense"))
    return Finding(Outcome.DEPENDS, {"mixtures": mixtures, "dense": dense})


@check("equal-distance-fair")
def _equal_distance_fair(known: Numbers) -> Finding:
    inside = [within_model(known, "pearson", IN, model, 10, 20) for model in ("solar", "glm")]
    pair = same_layer(known, "pearson", IN, "solar", "glm", 10)
    return Finding(Outcome.DEPENDS, {"solar": inside[0], "glm": inside[1], "pair": pair})


@check("layer-zero-table")
def _layer_zero_table(known: Numbers) -> Finding:
    means = {model: fmean(from_layer_zero(known, model)) for model in ("solar", "glm")}
    holds = all(
        _comes_out(mean, known.published[f"layer-zero/mean/{one}"], 4)
        for one, mean in means.items()
    )
    return _true_if(holds, **means)


@check("six-pairs")
def _six_pairs(known: Numbers) -> Finding:
    found = [*_controls(known), same_layer(known, "cosine", IN, "solar", "glm", 10)]
    mean, spread = fmean(found), pstdev(found)
    holds = _comes_out(mean, known.published["same-layer/mean"], 4, rounded=True)
    holds = holds and _comes_out(spread, known.published["same-layer/std"], 4, rounded=True)
    return _true_if(holds, mean=mean, spread=spread)


@check("over-layers")
def _over_layers(known: Numbers) -> Finding:
    layers = (5, 10, 15, 20, 25, 30)
    means = [known[f"many-layers/mean/{layer}"] for layer in layers]
    inside = fmean(known[f"many-layers/std/{layer}"] ** 2 for layer in layers)
    mean, spread = fmean(means), math.sqrt(inside + pstdev(means) ** 2)
    holds = _comes_out(mean, known.published["many-layers/mean"], 4, rounded=True)
    holds = holds and _comes_out(spread, known.published["many-layers/std"], 4, rounded=True)
    return _true_if(holds, mean=mean, spread=spread, of_means=pstdev(means))


@check("all-nine")
def _all_nine(known: Numbers) -> Finding:
    models = len(known.heatmap.models)
    counts = [int(known.published[f"architectures/{kind}/count"]) for kind in KINDS]
    fields = {"models": models, "counts": ", ".join(map(str, counts))}
    return _true_if(models == 9, **fields)


@check("independent-models")
def _independent_models(known: Numbers) -> Finding:
    heatmap = known.heatmap
    dense = means_by_kind(heatmap, with_kin=False)["dense-dense"]
    mixed = means_by_kind(heatmap, with_kin=False)["moe-dense"]
    both = means_by_kind(heatmap, with_kin=True)
    fields = {
        "mixed": mixed, "mixed_all": both["moe-dense"],
        "dense": dense, "dense_all": both["dense-dense"],
        "pair": same_layer(known, "cosine", IN, "solar", "glm", 10),
    }  # fmt: skip
    return Finding(Outcome.DEPENDS, fields)


def means_by_kind(heatmap: Heatmap, *, with_kin: bool) -> Mapping[str, float]:
    """Mean cosine by kinds of model, with or without the pairs that are likely kin."""
    groups: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for (i, one), (j, other) in combinations(enumerate(heatmap.models), 2):
        if not with_kin and (one, other) in heatmap.likely_kin:
            continue
        mixtures = (one in heatmap.mixtures) + (other in heatmap.mixtures)
        groups[KINDS[2 - mixtures]].append(heatmap.values[i][j])
    return {kind: fmean(values) for kind, values in groups.items()}


@check("random-vectors")
def _random_vectors(known: Numbers) -> Finding:
    # cos = 1 / (1 + v^2) for two independent vectors of coefficient of variation v
    expected, chance = 1 / (1 + 0.1**2), 1 / math.sqrt(CHANNELS - 1)
    holds = abs(known.published["metrics/random/cosine/mean"] - expected) < 1e-4
    holds = holds and abs(known.published["metrics/random/pearson/std"] - chance) < 1e-3
    return _true_if(holds, cosine=expected, pearson=chance)


@check("mean-raises-cosine")
def _mean_raises_cosine(known: Numbers) -> Finding:
    spreads = [
        known[f"std/{IN}/{model}[10]"] / known[f"mean/{IN}/{model}[10]"] for model in THREE[:2]
    ]
    formula = 1 / math.sqrt(math.prod(1 + spread**2 for spread in spreads))
    value = same_layer(known, "cosine", IN, "solar", "glm", 10)
    return _true_if(abs(formula - value) < 0.001, formula=formula, value=value)


@check("random-level")
def _random_level(known: Numbers) -> Finding:
    """Whether the layers' correlations are more than chance, and under what assumption.

    If the channels of one model are relabelled at random, the correlations r_i and r_j of two
    layers have variance 1/(n − 1) and covariance a·b/(n − 1), where a and b are the correlations
    of the two layers inside each model. Those were published for layers 10, 20 and 30 alone.
    """
    pearson = by_layer(known, "pearson", IN)
    chance, count, normal = 1 / math.sqrt(CHANNELS - 1), len(pearson), NormalDist()
    beyond = sum(abs(one) > 2 * chance for one in pearson)
    share = 2 * normal.cdf(-2)
    often = 1 - sum(
        math.comb(count, k) * share**k * (1 - share) ** (count - k) for k in range(beyond)
    )
    common = fmean(
        within_model(known, "pearson", IN, "solar", *two)
        * within_model(known, "pearson", IN, "glm", *two)
        for two in combinations((10, 20, 30), 2)
    )
    apart = chance / math.sqrt(count)
    together = chance * math.sqrt((1 + (count - 1) * common) / count)
    mean = fmean(pearson)
    fields = {
        "mean": mean, "high": max(pearson), "beyond": beyond, "layers": count,
        "often": 100 * often, "apart": mean / apart, "together": mean / together,
        "p": 100 * 2 * normal.cdf(-mean / together),
    }  # fmt: skip
    return Finding(Outcome.DEPENDS, fields)


# --- the revision ---


@check("pearson-small")
def _pearson_small(known: Numbers) -> Finding:
    mean = fmean(by_layer(known, "pearson", IN))
    return _true_if(
        _comes_out(mean, 0.01, 2), mean=mean, post=fmean(by_layer(known, "pearson", POST))
    )


@check("diagonal")
def _diagonal(known: Numbers) -> Finding:
    known = known.as_published()
    cosine = fmean(by_layer(known, "cosine", IN))
    pearson = fmean(by_layer(known, "pearson", IN))
    said = known.stated["revision/diagonal"], known.stated["revision/pearson"]
    near = abs(cosine - said[0]) < 0.002 and abs(pearson - said[1]) < 0.002
    return Finding(
        Outcome.DEPENDS if near else Outcome.FALSE, {"cosine": cosine, "pearson": pearson}
    )


@check("pearson-range")
def _pearson_range(known: Numbers) -> Finding:
    found = by_layer(known, "pearson", IN)
    holds = min(found) >= -0.05 and max(found) <= 0.05
    return _true_if(holds, low=min(found), high=max(found))


@check("cosine-range")
def _cosine_range(known: Numbers) -> Finding:
    found = by_layer(known, "cosine", IN)
    below = [layer for layer, value in enumerate(found) if round(value, 2) < 0.94]
    return _true_if(not below, layers=", ".join(map(str, below)), low=min(found))


@check("layer-table")
def _layer_table(known: Numbers) -> Finding:
    known = known.as_published()
    first, tenth = (by_layer(known, "cosine", IN)[layer] for layer in (0, 10))
    said = [known.stated[f"revision/cosine/{layer}"] for layer in (0, 10)]
    holds = abs(first - said[0]) < 0.001 and abs(tenth - said[1]) < 0.001
    return _true_if(holds, first=first, tenth=tenth, said=said[0], said_tenth=said[1])


@check("post-norm-table")
def _post_norm_table(known: Numbers) -> Finding:
    known = known.as_published()
    cosine, pearson = (fmean(by_layer(known, one, POST)) for one in ("cosine", "pearson"))
    holds = abs(cosine - known.stated["revision/post_cosine"]) < 0.01
    return _true_if(holds, cosine=cosine, pearson=pearson)


@check("scale")
def _scale(known: Numbers) -> Finding:
    first, second = (
        math.sqrt(
            CHANNELS * (known[f"mean/{role}/solar[0]"] ** 2 + known[f"std/{role}/solar[0]"] ** 2)
        )
        for role in (IN, POST)
    )
    holds = _comes_out(first, 2.80, 2) and _comes_out(second, 10.17, 2)
    return _true_if(holds, input=first, post=second)


@check("any-pair")
def _any_pair(known: Numbers) -> Finding:
    found = by_layer(known, "cosine", IN)
    return _true_if(min(found) > 0.9, low=min(found), second=found[1])


@check("near-one")
def _near_one(known: Numbers) -> Finding:
    means = [known[f"mean/{IN}/solar[{layer}]"] for layer in LAYERS]
    return _true_if(min(means) > 0.5, low=min(means), high=max(means))


@check("insufficient")
def _insufficient(known: Numbers) -> Finding:
    return Finding(Outcome.DEPENDS, {"derived": known.stated["revision/derived"][1]})
