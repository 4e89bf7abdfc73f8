"""trasgoDP: k-ary randomised response of an array."""


def mechanism():
    from trasgodp.categorical import dp_randomized_response_kary_array

    return lambda values: [str(value) for value in dp_randomized_response_kary_array(list(values), 1.0)]
