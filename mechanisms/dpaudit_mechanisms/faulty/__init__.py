"""The reference mechanisms with a planted fault each: the claim of the sound one, and less noise or other noise.

Every class is a sound mechanism with one step changed, and everything that is stated about it (`log_density`,
`distribution`, `privacy_loss`, ...) is about what it really does: only `claim` is wrong, or, where a twin is too noisy,
its error bound. `fault` says in words what was changed, and the true exact loss.
"""
