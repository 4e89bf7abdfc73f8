"""Learning: the probability of label 1 of an output, at any scale, from draws of earlier rounds, counted already.

The room knows columns of numbers and labels, and nothing of claims or tests. Rank trees (`dpaudit.learning.rank_tree`)
grow on views of the columns, some of which are learned themselves (`dpaudit.learning.learned_views`); a mixture
averages all of them (`dpaudit.learning.mixture`).

Validity: a mixture is a function of released draws alone. Draws that come later decide its value.
"""
