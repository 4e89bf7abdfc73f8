"""Scores from torch: what they are, what is refused, and audits of a training by opacus, with its noise and without."""

import sys

import numpy as np
import pytest

import dpaudit
from dpaudit.errors import UsageError
from dpaudit.scores.torch_scores import negative_losses, opacus_training
from dpaudit.scores.training import audit_training

CANARIES, COLUMNS = 300, 300


def test_without_torch_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UsageError, match=r"torch must be installed, got none. Use pip install 'dpaudit\[opacus\]'"):
        negative_losses(None, None, None)

    with pytest.raises(UsageError, match="torch must be installed, got none"):
        opacus_training(np.ones(3, dtype=bool), np.random.default_rng(0))


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="needs torch (extra opacus)")


def test_scores_are_minus_the_losses_and_the_model_stays_in_its_mode(torch):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Dropout(0.5))
    inputs, targets = torch.randn(7, 4), torch.arange(7) % 3
    found = negative_losses(model, inputs, targets)
    logits = (inputs @ model[0].weight.T + model[0].bias).detach().numpy().astype(float)
    expected = logits[np.arange(7), targets.numpy()] - np.log(np.exp(logits).sum(axis=1))
    assert found == pytest.approx(expected, abs=1e-5)  # single precision
    assert model.training
    assert negative_losses(model, inputs, targets, reference=model) == pytest.approx(np.zeros(7))
    with pytest.raises(UsageError, match=r"loss must have shape \(7,\), one a canary, got \(\)"):
        negative_losses(model, inputs, targets, torch.nn.CrossEntropyLoss())


def opacus_audit(torch, noise_multiplier):
    """One run of logistic regression, canaries in by coins, each with a column of its own and a random label."""
    opacus = pytest.importorskip("opacus", reason="needs opacus (extra opacus)")
    rng = np.random.default_rng(20_261_126)
    is_in = rng.integers(0, 2, CANARIES) == 1
    inputs, targets = torch.eye(COLUMNS), torch.from_numpy(rng.integers(0, 2, CANARIES))
    torch.manual_seed(1)
    data = torch.utils.data.TensorDataset(inputs[is_in], targets[is_in])
    model = torch.nn.Linear(COLUMNS, 2, bias=False)
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    engine = opacus.PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model,
        optimizer=optimizer,
        data_loader=torch.utils.data.DataLoader(data, batch_size=len(data) // 2),
        noise_multiplier=noise_multiplier,
        max_grad_norm=1.0,
    )
    for _ in range(5):
        for batch, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch), labels).backward()
            optimizer.step()
    scores = negative_losses(model, inputs, targets)
    return engine, dpaudit.audit_scores(scores[is_in], scores[~is_in], "eps=3,delta=1e-5", seed=1)


@pytest.mark.filterwarnings("ignore")
def test_a_training_by_opacus_is_audited_and_one_without_noise_is_found(torch):
    engine, sound = opacus_audit(torch, noise_multiplier=4.0)
    assert engine.get_epsilon(1e-5) < 3.0 and sound.verdict == "not_refuted"  # at 95%; this seed is no exception
    assert opacus_audit(torch, noise_multiplier=0.0)[1].verdict == "violated"


@pytest.mark.filterwarnings("ignore")
def test_the_training_by_opacus_has_the_loss_that_it_states(torch):
    """Its mu is 1, and 1,000 canaries answered independently show most of it: a bound above 1 at 5% of seeds."""
    pytest.importorskip("opacus", reason="needs opacus (extra opacus)")
    found = audit_training(opacus_training, "mu=1", canaries=1_000, seed=1, assume="independent")
    assert found.verdict == "not_refuted" and 0.8 < found.independent.parameter_lower < 1.0
    assert not found.notes
    assert audit_training(opacus_training, "mu=0.7", canaries=1_000, seed=1, assume="independent").verdict == "violated"


# --- arrays and files of other trainers -------------------------------------------------------------------------------


class Jaxlike:
    """What jax and tensorflow arrays have in common: `__array__`."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


def test_arrays_of_other_libraries_and_their_files_give_the_same_result(tmp_path):
    rng = np.random.default_rng(2)
    is_in = rng.integers(0, 2, 400) == 1
    scores = (rng.normal(size=400) + 3.0 * is_in).astype(np.float32)
    split = scores[is_in], scores[~is_in]
    # jax_privacy: in_canary_scores, out_canary_scores; tensorflow-privacy: membership_scores_train, ..._test
    np.savez(tmp_path / "jax.npz", in_canary_scores=split[0], out_canary_scores=split[1])
    np.savez(tmp_path / "tensorflow.npz", membership_scores_train=split[0], membership_scores_test=split[1])
    plain = dpaudit.audit_scores(*split, "mu=1", seed=3).to_dict()
    for found in (
        dpaudit.audit_scores(Jaxlike(split[0]), Jaxlike(split[1]), "mu=1", seed=3),
        *(
            dpaudit.audit_scores(f"{tmp_path}/{file}.npz:{one}", f"{tmp_path}/{file}.npz:{other}", "mu=1", seed=3)
            for file, one, other in (
                ("jax", "in_canary_scores", "out_canary_scores"),
                ("tensorflow", "membership_scores_train", "membership_scores_test"),
            )
        ),
    ):
        assert {**found.to_dict(), "seconds": 0} == {**plain, "seconds": 0}
