"""pure-ldp: optimal unary encoding of one of four values."""


def mechanism():
    from pure_ldp.frequency_oracles.unary_encoding import UEClient

    client = UEClient(epsilon=0.5, d=4, use_oue=True, index_mapper=lambda value: value)
    return lambda value: client.privatise(int(value)).tolist()
