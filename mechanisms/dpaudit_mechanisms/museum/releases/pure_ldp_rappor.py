"""pure-ldp: RAPPOR with one cohort, one hash function and four bits."""


def mechanism():
    from pure_ldp.frequency_oracles.rappor import RAPPORClient

    client = RAPPORClient(f=0.5, m=4, hash_funcs=[[lambda text: int(text) % 4]], num_of_cohorts=1, index_mapper=int)
    return lambda value: [int(bit) for bit in client.privatise(int(value))[0]]
