"""Tail bounds on the number of correct guesses in one training run, and their inverse.

The game. There are m canaries. Fair and independent coins decide which are in the training set; the mechanism runs
once, and an attack that sees its output alone makes exactly r guesses "in" or "out" (which canaries it guesses on, and
how, is a function of the output). W is the number of correct guesses. Notation: p_k = P(W = k).

Lemma (swap). Let the mechanism be (epsilon, delta)-DP for a flip of one coin, in both directions, and phi a function of
the number of correct guesses on the *other* canaries with values in [0, 1]. Fix all coins but the i-th. The event "the
guess on i is `in`, weighted by phi" does not depend on coin i itself, so its probability with coin i = in is at most
e^epsilon times that with coin i = out, plus delta; likewise for `out`. Averaging over the coins,

    E[1{i right} phi] <= e^epsilon E[1{i wrong} phi] + delta.

Sum over i. If W = k, there are k right guesses whose others have k - 1 right ones, and if W = k - 1, there are r - k +
1 wrong guesses whose others have k - 1 right ones. Hence, for every phi at once,

    sum_k max(0, k p_k - e^epsilon (r - k + 1) p_(k-1)) <= m delta.

Theorem. Among all p that keep this, the largest P(W >= v) is min(1, t + m delta t (1 - t) / (v b_v)), where b is
Binomial(r, e^epsilon / (1 + e^epsilon)), and t its probability of v or more.

Proof. A linear program; its dual is: minimise T + m delta y over T and 0 <= A_k <= y with
1{k >= v} - k A_k + (r - k) e^epsilon A_(k+1) <= T. Take T = t. With the binomial identity (k + 1) b_(k+1) =
e^epsilon (r - k) b_k the recursion from k = r downwards, times b_k, telescopes: k b_k A_k = (1 - t) P(b >= k) for k >=
v, and t P(b < k) for k < v; at k = 0 it holds with equality. b is log-concave, so A_k rises up to k = v and falls from
there: y = A_v = t (1 - t) / (v b_v). Any dual solution is an upper bound. It is attained: b, mixed with b given {W >=
v}.

With delta = 0 this is the binomial bound of Steinke, Nasr and Jagielski (2023, arXiv:2305.08846, theorem 5.2). Theirs
has the correction 2 m delta max_i P(v - i <= b < v) / i; the one above is exact for the constraints stated and smaller:
at 5%, about 0.46 / 0.6 (1 - p) of theirs for r = m (p is the binomial's probability; tests compare them).

Whole trade-off function. All claims are rejected by events {W >= v} of one statistic, with a v that depends on the
claim only. The true mechanism keeps many claims (epsilon, delta(epsilon)); their rejection regions are nested, so that
*some* true claim is rejected with the probability of the largest region, which is at most the level: bounds at all
epsilons, on mu and on the trade-off function hold together at no extra cost. Several numbers r of guesses are several
statistics: their levels add up. r must not depend on the output: otherwise delta could be spent where r makes it cheap.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from dpaudit.privacy.claims import FloatArray

OUTWARDS = 1e-8, 1e-14  # relative; and for each guess, as log-gammas of n lose about n log(n) roundings
MIN_TAIL = 1e-250


def delta_lower(epsilon: FloatArray, guesses: int, correct: int, canaries: float, level: float) -> FloatArray:
    """The delta below which (epsilon, delta)-DP is rejected at a level, for each epsilon >= 0: the theorem's inverse.

    In [0, 1], 0 where nothing is rejected; rounded down; does not increase in epsilon. `canaries` is the theorem's m.

    Examples
    --------
    >>> delta_lower(np.array([0.0, 3.0, 4.0]), guesses=100, correct=100, canaries=100, level=0.05).round(4)
    array([0.05  , 0.0426, 0.    ])
    """
    epsilon = np.asarray(epsilon, dtype=float)
    if correct <= 0:
        return np.zeros_like(epsilon)
    tail, spread = _tail_and_spread(epsilon, guesses, correct)
    room = np.maximum(level - tail, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(room > 0.0, room * spread / (canaries * (1.0 - tail)), 0.0)
    return np.asarray(np.clip(found * (1.0 - OUTWARDS[0] - OUTWARDS[1] * guesses), 0.0, 1.0))


def _tail_and_spread(epsilon: FloatArray, guesses: int, correct: int) -> tuple[FloatArray, FloatArray]:
    """t = P(b >= v), and v b_v / t; where t underflows, a lower bound of the latter.

    b_(k+1) / b_k <= e^epsilon (r - v) / (v + 1) = x for k >= v, so that t <= b_v / (1 - x).
    """
    accuracy = scipy.special.expit(epsilon)
    tail = np.asarray(scipy.special.betainc(correct, guesses - correct + 1.0, accuracy))
    gammaln, log_expit = scipy.special.gammaln, scipy.special.log_expit
    choose = gammaln(guesses + 1.0) - gammaln(correct + 1.0) - gammaln(guesses - correct + 1.0)
    log_mass = choose + correct * log_expit(epsilon) + (guesses - correct) * log_expit(-epsilon)
    with np.errstate(over="ignore", divide="ignore"):
        falling = np.maximum(0.0, 1.0 - np.exp(np.minimum(epsilon, 700.0)) * (guesses - correct) / (correct + 1.0))
        ratio = np.exp(np.minimum(log_mass - np.log(np.maximum(tail, MIN_TAIL)), 0.0))
    return tail, correct * np.where(tail > MIN_TAIL, ratio, falling)


def gaussian_is_rejected(mu: FloatArray, guesses: int, correct: int, canaries: int, level: float) -> NDArray[np.bool_]:
    """Tell whether mu-Gaussian DP, for each mu, is rejected by the recursion over thresholds of the number of correct
    guesses.

    With phi = 1{the others have >= j - 1 right} the swap lemma for a trade-off function f, F = 1 - f, reads

        U_j <= F(L_j),   m U_j = sum_(k >= j) k p_k,   m L_j = sum_(k >= j - 1) (r - k) p_k

    Suppose P(W >= v) > level. All mass above v moved to v (and cut to `level`) lowers U_v and every need below it, so
    p_v = level is the easiest case; going down from j = v, L_j >= F^-1(U_j) forces a least p_(j-1) and with it a least
    U_(j-1). Where the masses that are forced exceed 1 there is no such p. U_1 + L_1 = (r / m) sum_k p_k, which must
    stay below r / m.

    Source: Mahloujifar, Melis and Chaudhuri (2024), arXiv:2410.22235.
    """
    mu = np.asarray(mu, dtype=float)
    if correct <= 0:
        return np.zeros(mu.shape, dtype=bool)
    right = np.full(mu.shape, level * correct / canaries)
    wrong = np.full(mu.shape, level * (guesses - correct) / canaries)
    for k in range(correct - 1, -1, -1):
        # the least mass of wrong guesses that F allows beside so many right ones: F^-1(x) = Phi(Phi^-1(x) - mu)
        needed = scipy.special.ndtr(scipy.special.ndtri(np.minimum(right, 1.0)) - mu)
        increase = np.maximum(needed - wrong, 0.0)
        if not increase.any():
            break  # nothing is forced from here on
        wrong = wrong + increase
        right = np.minimum(right + increase * (k / (guesses - k)), 1.0)
        if np.all(right + wrong > guesses / canaries):
            break
    return np.asarray(right + wrong > guesses / canaries * (1.0 + 1e-9))
