"""A gallery of leaks by their form, each with a sound twin: the share of each that an audit with no hint finds.

Problems of the bench measure an audit against the optimum. The gallery asks something else: of a leak of this form, how
often is it found at all? Every leak breaks epsilon = 1 by far, so that a miss is blindness and not a want of draws.
"""
