"""privateAB: a category with discrete Laplace noise on its indicator vector."""


def mechanism():
    import torch
    from privateAB.client import client

    clients = client()
    return lambda value: clients.release_private("disclapu", torch.tensor([int(value)]), 3, 1.0, None)[0].tolist()
