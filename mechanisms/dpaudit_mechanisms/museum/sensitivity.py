"""Bugs of sensitivity: noise for less than a record can move."""

import warnings

import numpy as np

from dpaudit.domains import DatasetDomain
from dpaudit.exhibits.exhibit import Release
from dpaudit_mechanisms.museum.bugs import Bugs, two_sided_geometric
from dpaudit_mechanisms.museum.releases import published

bug = Bugs("sensitivity")


@bug(
    "eeprivacy 0.0.5, PrivateClampedMean (found by this museum)",
    "The mean that bounds sensitivity with clamping clamps the noisy answer; one value far beyond the bounds moves it "
    "from end to end.",
    "eps=1",
    DatasetDomain(values=(0.0, 1.0, 0.5, 100.0, -100.0), largest=6, smallest=1, adjacency="replace_one"),
    ([0.0, 0.0], [0.0, 100.0]),
    releases=(
        published(
            "eeprivacy_clamped_mean", "PrivateClampedMean(lower_bound=0, upper_bound=1).execute(values, epsilon=1)"
        ),
    ),
)
def clamped_after_the_mean(data, size, rng, mended):
    """A mean that promises to clamp clamps its answer, not the values."""
    values = np.asarray(data, dtype=float)
    if mended:
        values = np.clip(values, 0.0, 1.0)
    return np.clip((values.sum() + rng.laplace(size=size)) / len(values), 0.0, 1.0)


@bug(
    "opendp/smartnoise-sdk#622",
    "The covariance is computed from the data before clipping: the clipped copy is never used.",
    "eps=1",
    DatasetDomain(values=((0.0, 0.0), (1.0, 1.0), (0.5, 1.0), (4.0, 4.0), (-4.0, 4.0))),
    ([], [(4.0, 4.0)]),
)
def clipped_then_raw(data, size, rng, mended):
    """The data are clipped, and then the statistic is computed from the data as they were."""
    pairs = np.reshape(data, (-1, 2))
    clipped = np.clip(pairs, 0.0, 1.0)
    if mended:
        pairs = clipped
    return float(np.prod(pairs, axis=1).sum()) + rng.laplace(size=size)


@bug(
    "google/differential-privacy#84",
    "A count of distinct values gives each shared value to one user and bounds users afterwards: an outlier who has "
    "all values takes those of the others away.",
    "eps=1",
    DatasetDomain(values=(("a",), ("b",), ("c",), ("d",), ("a", "b", "c", "d")), largest=8),
    ([("a",), ("b",), ("c",), ("d",)], [("a",), ("b",), ("c",), ("d",), ("a", "b", "c", "d")]),
)
def distinct_after_attribution(data, size, rng, mended):
    """Distinct values are attributed to one user each before the contributions of a user are bounded."""
    owner = {value: user for user, values in enumerate(data) for value in values}  # the last user of a value has it
    kept = set(owner.values())  # each user keeps one value
    if mended:
        kept = {values[0] for values in data}  # each user keeps one, then they are made distinct
    return len(kept) + rng.laplace(scale=1.0, size=size)


@bug(
    "uber-archive/sql-differential-privacy#1",
    "The count of a join gets sensitivity 1 as the key is unique in one table; a change there moves all joined rows.",
    "eps=1",
    DatasetDomain(values=(("US", 1), ("US", 100), ("FR", 1), ("FR", 100), ("US", 0))),
    ([], [("US", 100)]),
)
def join_key_unique(data, size, rng, mended):
    """A join: removing one user removes all of their trips."""
    joined = [trips for country, trips in data if country == "US"]
    if mended:
        joined = [min(trips, 1) for trips in joined]
    return sum(joined) + rng.laplace(scale=1.0, size=size)  # the key is unique in the table of users, so one row


@bug(
    "diff-priv-laplace-python 1.0.5, DiffPrivStatistics.sum, mean and variance (found by this museum)",
    "The bounds that scale the noise are the least and the largest value of the data: the size of the noise tells how "
    "large the largest is.",
    "eps=1",
    DatasetDomain.between(1.0, 100.0, largest=8, smallest=1, adjacency="replace_one"),
    ([1.0, 1.0], [1.0, 100.0]),
    releases=(published("diff_priv_laplace_sum", "DiffPrivStatistics.sum(values, epsilon=1)"),),
)
def largest_value_as_sensitivity(data, size, rng, mended):
    """The sensitivity of a sum is the largest value that is there."""
    if mended:
        return np.clip(data, 0.0, 100.0).sum() + rng.laplace(scale=100.0, size=size)
    return sum(data) + rng.laplace(scale=max(abs(min(data)), abs(max(data))), size=size)


def _linear_regression():
    from diffprivlib.models import LinearRegression

    def fitted(data, rng):
        features = np.array([[5.0], *([record] for record in data)])
        seed = int(rng.integers(2**31))
        model = LinearRegression(
            epsilon=1.0, bounds_X=(0.0, 100.0), bounds_y=(0.0, 1.0), fit_intercept=False, random_state=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return float(model.fit(features, np.zeros(len(features)) + 0.5).coef_[0])

    return fitted


@bug(
    "IBM/differential-privacy-library#105",
    "Linear regression takes the larger of the lower bound and the lower bound: no noise for features in [0, 100].",
    "eps=1",
    DatasetDomain.between(0.0, 100.0, largest=8),
    ([], [100.0]),
    faulty=(0.0, 0.0),
    mended=(0.0, 100.0),
    releases=(Release("diffprivlib", "0.6.6", _linear_regression),),
)
def lower_bound_twice(data, size, rng, bounds):
    """The sensitivity of a squared feature is taken from its lower bound alone."""
    return np.square(np.clip(data, 0.0, 100.0)).sum() + rng.laplace(scale=max(np.abs(bounds)) ** 2, size=size)


@bug(
    "opendp/smartnoise-sdk#317",
    "SUM of a column whose bounds are not given has sensitivity None, and the exact sum is returned.",
    "eps=1",
    DatasetDomain.between(0.0, 10.0),
    ([], [10.0]),
)
def no_bounds_no_noise(data, size, rng, mended):
    """A column without bounds in the metadata has no sensitivity, and then no noise."""
    total, sensitivity = np.sum(data), None
    if mended:  # it asks for bounds before it sums
        total, sensitivity = np.clip(data, 0.0, 10.0).sum(), 10.0
    return total + (rng.laplace(scale=sensitivity, size=size) if sensitivity is not None else np.zeros(size))


@bug(
    "DiffPriv 1.0.3, diff.lapmech (found by this museum)",
    "The sensitivity is estimated for a function of the column, such as its mean; the noise of that size is added to "
    "each record, and the records are written out.",
    "eps=1",
    DatasetDomain(values=(0.0, 1.0), largest=8, smallest=4, adjacency="replace_one"),
    ([0.0] * 8, [0.0] * 7 + [1.0]),
    releases=(published("diffpriv_laplace", "DiffPriv.diff.lapmech(file, path, epsilon=1, f=mean)"),),
)
def noise_of_the_mean_on_each_record(data, size, rng, mended):
    """Each record is released with noise for the sensitivity of the mean."""
    scale = 2.0 / len(data)
    if mended:
        scale = 1.0
    return np.asarray(data, dtype=float) + rng.laplace(scale=scale, size=(size, len(data)))


@bug(
    "opendp/opendp#2950",
    "Theil-Sen pairs records off and drops the last of an odd number, so that one added record can take another one's "
    "place: the stability is not 1.",
    "eps=1",
    DatasetDomain(values=(0.0, 1.0), largest=9),
    ([0.0, 1.0], [1.0, 0.0, 1.0]),
)
def odd_record_dropped(data, size, rng, mended):
    """Records are paired off, and an odd one is dropped: one more record changes which one that is."""
    even = data[: len(data) // 2 * 2]
    total = float(np.clip(np.subtract(even[1::2], even[::2]), -1.0, 1.0).sum())
    if mended:
        total = float(sum(record == 1.0 for record in data))  # no pairing: each record counts by itself
    return total + rng.laplace(scale=1.0, size=size)


@bug(
    "diff-priv-laplace-python 1.0.5, DiffPrivStatistics.max, min and median (found by this museum)",
    "Minimum, maximum and median have the sensitivity 1; the documented examples take values from 1 to 100.",
    "eps=1",
    DatasetDomain.between(1.0, 100.0, largest=8, smallest=1, adjacency="replace_one"),
    ([1.0, 1.0], [1.0, 100.0]),
    faulty=1.0,
    mended=100.0 - 1.0,
    releases=(published("diff_priv_laplace_max", "DiffPrivStatistics.max(values, epsilon=1)"),),
)
def sensitivity_one_for_any_range(data, size, rng, scale):
    """The largest value is released with a sensitivity of one, whatever the range."""
    return max(data) + rng.laplace(scale=scale, size=size)


@bug(
    "opendp/opendp#314",
    "The sensitivity of a sum of known size is half an odd range, and integer division rounds it down.",
    "eps=1",
    DatasetDomain(values=(0, 1, 2, 3), largest=5, smallest=1, adjacency="replace_one"),
    ([0], [3]),
    faulty=2 * (3 // 2),  # a replacement is a removal and an addition, each half of the range
    mended=3,
    releases=(published("opendp_sized_sum", "make_sized_bounded_sum(size, (0, 3)) >> make_base_geometric(scale=2)"),),
)
def sized_sum_truncated(data, size, rng, sensitivity):
    """A sensitivity of one and a half is computed in whole numbers."""
    return int(np.clip(data, 0, 3).sum()) + two_sided_geometric(sensitivity, size, rng)


@bug(
    "opendp/smartnoise-sdk#320",
    "SUM(a + b) is noised for the sensitivity of one column, where those of both add up.",
    "eps=1",
    DatasetDomain(values=((0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 1.0))),
    ([], [(1.0, 1.0)]),
    faulty=1.0,
    mended=2.0,
)
def two_columns_added(data, size, rng, scale):
    """The sum of two columns gets the sensitivity of one."""
    return float(np.clip(np.reshape(data, (-1, 2)), 0.0, 1.0).sum()) + rng.laplace(scale=scale, size=size)


@bug(
    "opendp/smartnoise-sdk#203",
    "The sum of squares for VARIANCE gets noise for the clamping bounds of the values, not of their squares.",
    "eps=1",
    DatasetDomain.between(0.0, 50.0),
    ([], [50.0]),
    faulty=50.0,
    mended=50.0**2,
)
def variance_bounds(data, size, rng, scale):
    """A variance squares the values and scales the noise by the bounds as they were."""
    return np.square(np.clip(data, 0.0, 50.0)).sum() + rng.laplace(scale=scale, size=size)
