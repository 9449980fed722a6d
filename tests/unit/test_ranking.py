from __future__ import annotations

import math
import random
from dataclasses import FrozenInstanceError, replace

import pytest

from langchain_memrag.ranking import (
    RECIPE,
    RECIPES,
    Recipe,
    best_of,
    estimate_tokens,
    fuse,
    idf,
    impact,
    pack,
    recency,
    spread,
    wilson_lower_bound,
)

TWO_ARMS = Recipe("two arms", weights={"dense": 1.0, "lexical": 2.0})
CHAIN = replace(TWO_ARMS, before=(0.4, 0.2), after=(0.2, 0.1), spread_from=1)


def test_recipes_are_frozen_and_found_by_their_own_names() -> None:
    assert {name: recipe.name for name, recipe in RECIPES.items()} == {name: name for name in RECIPES}
    assert RECIPES["default"] is RECIPE
    with pytest.raises(FrozenInstanceError):
        RECIPE.depth = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        RECIPE.weights["dense:turn"] = 9.0  # type: ignore[index]


def test_impact_grows_with_frequency_and_shrinks_with_length() -> None:
    assert impact(1, 10, RECIPE) < impact(2, 10, RECIPE) < impact(50, 10, RECIPE) < 1
    assert impact(1, 10, RECIPE) > impact(1, 100, RECIPE) > 0


def test_impact_is_bm25_by_hand() -> None:
    recipe = Recipe("by hand", k1=1.2, b=0.75, average_length=20)
    assert impact(3, 40, recipe) == pytest.approx(3 / (3 + 1.2 * (0.25 + 0.75 * 2)))


def test_impact_ignores_length_when_b_is_zero() -> None:
    recipe = Recipe("no length", b=0)
    assert impact(2, 1, recipe) == impact(2, 10_000, recipe)


def test_idf_is_highest_for_the_rarest_and_never_negative() -> None:
    values = [idf(frequency, 100) for frequency in range(101)]
    assert values == sorted(values, reverse=True)
    assert values[100] > 0
    assert idf(200, 100) == values[100]
    assert math.isfinite(idf(0, 0))


def test_fusion_adds_weighted_normal_scores() -> None:
    fused = fuse(
        {"dense": [("a", 0.9), ("b", 0.8), ("c", 0.7)], "lexical": [("b", 12.0), ("c", 2.0)]}, TWO_ARMS
    )
    assert [hit.id for hit in fused] == ["b", "a", "c"]
    assert [hit.score for hit in fused] == pytest.approx([2.5, 1.0, 0.0])


def test_fusion_explains_every_signal_largest_share_first() -> None:
    (first, *_) = fuse({"dense": [("a", 0.9), ("b", 0.8)], "lexical": [("b", 12.0), ("a", 2.0)]}, TWO_ARMS)
    assert first.id == "b"
    assert [(one.signal, one.score, one.rank, one.share) for one in first.shares] == [
        ("lexical", 12.0, 1, 2.0),
        ("dense", 0.8, 2, 0.0),
    ]


def test_nothing_found_gives_nothing() -> None:
    assert fuse({}, TWO_ARMS) == []
    assert fuse({"dense": [], "lexical": []}, TWO_ARMS) == []


def test_one_hit_and_equal_scores_count_in_full() -> None:
    assert [hit.score for hit in fuse({"dense": [("a", 0.1)]}, TWO_ARMS)] == [1.0]
    assert [hit.score for hit in fuse({"lexical": [("a", 3.0), ("b", 3.0)]}, TWO_ARMS)] == [2.0, 2.0]


def test_ties_keep_the_order_in_which_ids_came() -> None:
    hits = [(name, 1.0) for name in "qwerty"]
    assert "".join(hit.id for hit in fuse({"dense": hits}, TWO_ARMS)) == "qwerty"


def test_an_arm_that_is_empty_leaves_the_other_as_it_was() -> None:
    hits = [("a", 0.9), ("b", 0.5)]
    assert fuse({"dense": hits, "lexical": []}, TWO_ARMS) == fuse({"dense": hits}, TWO_ARMS)


def test_a_signal_without_weight_is_passed_over() -> None:
    assert fuse({"rumour": [("a", 5.0)]}, TWO_ARMS) == []
    assert fuse({"dense": [("a", 5.0)]}, replace(TWO_ARMS, weights={"dense": 0.0})) == []


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_scores_that_are_not_finite_are_passed_over(broken: float) -> None:
    hits = [("a", 0.9), ("x", broken), ("b", 0.5)]
    assert [(hit.id, hit.score) for hit in fuse({"dense": hits}, TWO_ARMS)] == [("a", 1.0), ("b", 0.0)]
    assert fuse({"dense": [("x", broken)]}, TWO_ARMS) == []


def test_parts_of_a_record_count_once_with_the_best() -> None:
    fused = fuse({"dense": [("a", 0.2), ("b", 0.5), ("a", 0.9), ("a", 0.1)]}, TWO_ARMS)
    assert [(hit.id, len(hit.shares)) for hit in fused] == [("a", 1), ("b", 1)]
    assert fused[0].shares[0].score == 0.9


def test_fusion_does_not_care_about_the_scale_of_an_engine() -> None:
    chance = random.Random(7)
    for _ in range(50):
        hits = [(number, chance.uniform(-1, 1)) for number in range(20)]
        scaled = [(ident, 250 * score + 30) for ident, score in hits]
        plain, other = fuse({"dense": hits}, TWO_ARMS), fuse({"dense": scaled}, TWO_ARMS)
        assert [hit.id for hit in plain] == [hit.id for hit in other]
        assert [hit.score for hit in plain] == pytest.approx([hit.score for hit in other])


def test_fused_scores_are_bounded_by_the_weights_and_are_their_shares() -> None:
    chance = random.Random(11)
    for _ in range(50):
        signals = {
            name: [(chance.randrange(30), chance.gauss(0, 3)) for _ in range(chance.randrange(25))]
            for name in ("dense", "lexical")
        }
        fused = fuse(signals, TWO_ARMS)
        assert [hit.score for hit in fused] == sorted((hit.score for hit in fused), reverse=True)
        assert {hit.id for hit in fused} == {ident for hits in signals.values() for ident, _ in hits}
        for hit in fused:
            assert 0 <= hit.score <= 3
            assert hit.score == pytest.approx(sum(one.share for one in hit.shares))


def test_several_questions_give_each_hit_its_best_score() -> None:
    first = fuse({"dense": [("a", 0.9), ("b", 0.8), ("c", 0.1)]}, TWO_ARMS)
    second = fuse({"lexical": [("c", 9.0), ("b", 1.0)]}, TWO_ARMS)
    merged = best_of([first, second])
    assert [hit.id for hit in merged] == ["c", "a", "b"]
    assert [hit.score for hit in merged] == pytest.approx([2.0, 1.0, 0.875])
    assert merged[0].shares[0].signal == "lexical"


def test_one_question_is_its_own_ranking() -> None:
    ranking = fuse({"dense": [("a", 0.9), ("b", 0.5), ("c", 0.5)]}, TWO_ARMS)
    assert best_of([ranking]) == ranking
    assert best_of([ranking, ranking]) == ranking
    assert best_of([]) == best_of([[], []]) == []


def test_a_turn_shares_in_the_scores_around_it() -> None:
    order = ["q", "a", "b", "c"]
    before = {name: order[:place][::-1] for place, name in enumerate(order)}
    after = {name: order[place + 1 :] for place, name in enumerate(order)}
    gains = spread({"a": 1.0}, before, after, CHAIN)
    # The turn that follows a match gains most; "a" itself gains nothing from itself.
    assert gains == {"b": 0.4, "c": 0.2, "q": 0.2}


def test_gains_add_up_and_found_turns_gain_too() -> None:
    before, after = {"b": ["a"]}, {"a": ["b"]}
    gains = spread({"a": 1.0, "b": 0.5}, before, after, CHAIN)
    assert gains == pytest.approx({"b": 0.4, "a": 0.1})


def test_only_the_best_draw_in_turns_that_no_arm_found() -> None:
    before, after = {"x": ["a"], "y": ["b"]}, {"a": ["x"], "b": ["y"]}
    assert spread({"a": 1.0, "b": 0.9}, before, after, CHAIN) == {"x": 0.4}
    assert set(spread({"a": 1.0, "b": 0.9}, before, after, replace(CHAIN, spread_from=2))) == {"x", "y"}


def test_spreading_reaches_no_further_than_its_weights() -> None:
    far = {"a": ["1", "2", "3", "4"]}
    assert set(spread({"a": 1.0}, {}, far, CHAIN)) == {"1", "2"}
    assert spread({"a": 1.0}, far, far, replace(CHAIN, before=(), after=())) == {}
    assert spread({}, far, far, CHAIN) == {}


def test_recency_halves_and_never_ends() -> None:
    assert recency(0, 30) == 1
    assert recency(30, 30) == 0.5
    assert recency(60, 30) == 0.25
    assert recency(-5, 30) == 1
    assert 0 < recency(10_000, 30) < recency(100, 30)


def test_the_default_recency_is_gentle() -> None:
    assert RECIPE.recency_weight <= 0.05


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("word", 1), ("words", 2), ("记忆", 2), ("记忆 ok", 3)]
)
def test_tokens_are_estimated_in_both_scripts(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


def test_packing_passes_over_what_is_too_long() -> None:
    assert pack([5, 50, 4, 2], budget=10, most=10) == [0, 2]
    assert pack([5, 50, 4, 2], budget=0, most=2) == [0, 1]
    assert pack([5, 5, 5], budget=5, most=3) == [0]
    assert pack([9], budget=5, most=3) == []
    assert pack([], budget=5, most=3) == []
    assert pack([1, 1], budget=5, most=0) == []


def test_packing_never_breaks_its_limits() -> None:
    chance = random.Random(3)
    for _ in range(100):
        sizes = [chance.randrange(1, 60) for _ in range(chance.randrange(20))]
        budget, most = chance.randrange(1, 200), chance.randrange(10)
        chosen = pack(sizes, budget, most)
        assert sum(sizes[place] for place in chosen) <= budget
        assert len(chosen) <= most
        assert chosen == sorted(set(chosen))


def test_wilson_is_cautious_with_few_trials() -> None:
    assert wilson_lower_bound(0, 0) == 0
    assert wilson_lower_bound(0, 10) == 0
    assert wilson_lower_bound(1, 1) == pytest.approx(0.2065, abs=1e-4)
    assert wilson_lower_bound(8, 10) == pytest.approx(0.4902, abs=1e-4)
    assert wilson_lower_bound(1, 1) < wilson_lower_bound(10, 10) < wilson_lower_bound(1000, 1000) < 1
    assert wilson_lower_bound(8, 10, z=0) == pytest.approx(0.8)


@pytest.mark.parametrize(("successes", "trials"), [(2, 1), (-1, 3), (0, -1)])
def test_wilson_refuses_counts_out_of_range(successes: int, trials: int) -> None:
    with pytest.raises(ValueError, match="successes of"):
        wilson_lower_bound(successes, trials)
