"""Scores of canaries from a trained torch module, and a training by opacus to try (extra `opacus`)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import UsageError
from dpaudit.privacy.claims import FloatArray
from dpaudit.scores.training import SIZES, TrainingRecord


def negative_losses(
    model: Any,
    inputs: Any,
    targets: Any,
    loss: Callable[[Any, Any], Any] | None = None,
    reference: Any | None = None,
) -> FloatArray:
    """Scores of canaries: minus the loss of each under a trained model, less the same under a reference model.

    A black-box score: it is larger where the model has learned a canary. A reference that was trained without any
    canary takes off how hard each one is. The model is put into evaluation mode, and back.

    Parameters
    ----------
    model : torch.nn.Module
        Also as `opacus.PrivacyEngine.make_private` returns it.
    inputs, targets : torch.Tensor, shapes (canaries, ...), (canaries, ...)
    loss : callable, optional
        From the model's outputs and targets to losses of shape (canaries,); cross-entropy by default.
    reference : torch.nn.Module, optional

    Returns
    -------
    ndarray of float, shape (canaries,)

    Raises
    ------
    UsageError
        If torch is not installed, or the losses are not one a canary.
    """
    torch = _installed("torch")

    def scores_under(module: Any) -> FloatArray:
        was_training = module.training
        module.eval()
        try:
            with torch.no_grad():
                outputs = module(inputs)
                found = (
                    torch.nn.functional.cross_entropy(outputs, targets, reduction="none")
                    if loss is None
                    else loss(outputs, targets)
                )
        finally:
            module.train(was_training)
        if tuple(found.shape) != (len(inputs),):
            raise UsageError(f"loss must have shape ({len(inputs)},), one a canary, got {tuple(found.shape)}.")
        return np.asarray(-found.detach().cpu().double().numpy(), dtype=np.float64)

    scores = scores_under(model)
    return scores if reference is None else scores - scores_under(reference)


def opacus_training(is_in: NDArray[np.bool_], rng: np.random.Generator) -> TrainingRecord:
    """Train once by opacus, on a processor, for `dpaudit scores --from-training opacus`: mu = 1 for each canary.

    Logistic regression of full batches, with the sizes of `dpaudit.scores.training.example`. A canary has a column of
    its own, in which its score is the final weight.
    """
    torch, opacus = _installed("torch"), _installed("opacus")
    features = np.zeros((SIZES.examples + len(is_in), SIZES.columns + len(is_in)))
    features[: SIZES.examples, : SIZES.columns] = rng.normal(size=(SIZES.examples, SIZES.columns))
    features[SIZES.examples :, SIZES.columns :] = 2.0 * SIZES.canary * SIZES.clip * np.eye(len(is_in))
    present = np.append(np.ones(SIZES.examples, dtype=bool), is_in)
    targets = np.append(rng.integers(0, 2, SIZES.examples), np.ones(len(is_in), dtype=np.int64))
    of = torch.utils.data.TensorDataset(*(torch.tensor(part[present]).float() for part in (features, targets)))
    model = torch.nn.Linear(features.shape[1], 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    model, optimizer, loader = opacus.PrivacyEngine().make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=SIZES.rate),
        data_loader=torch.utils.data.DataLoader(of, batch_size=len(of)),
        noise_multiplier=SIZES.noise,
        max_grad_norm=SIZES.clip,
        poisson_sampling=False,
        noise_generator=torch.Generator().manual_seed(int(rng.integers(2**62))),
    )
    for _ in range(SIZES.steps):
        for batch, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(model(batch)[:, 0], labels).backward()
            optimizer.step()
    weights = model.state_dict()["_module.weight"][0].numpy().astype(float)
    norms = 0.5 * np.linalg.norm(features, axis=1)
    of_examples, of_canaries = norms[: SIZES.examples], norms[SIZES.examples :]
    everything = np.ones((SIZES.steps, len(of)), dtype=bool)
    return TrainingRecord(weights[SIZES.columns :], everything, 1.0, SIZES.clip, of_canaries, of_examples)


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(f"{name} must be installed, got none. Use pip install 'dpaudit[opacus]'.") from error
