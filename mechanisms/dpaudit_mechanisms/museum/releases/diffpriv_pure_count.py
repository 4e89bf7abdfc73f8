"""diffpriv-pure: a count with geometric noise."""


def mechanism():
    from diffpriv_pure import private_count

    return lambda count: private_count(int(count), 1.0)
