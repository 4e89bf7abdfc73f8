"""Scores of canaries from a trained torch module: by opacus, or by a loop of one's own (extra `opacus`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpaudit.errors import UsageError

FloatArray = NDArray[np.float64]


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
    try:
        import torch
    except ImportError as error:
        raise UsageError("torch must be installed, got none. Use pip install 'dpaudit[opacus]'.") from error

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


__all__ = ["negative_losses"]
