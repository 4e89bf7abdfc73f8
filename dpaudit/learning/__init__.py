"""Learning: which outputs speak for x, at any scale, from draws that nothing is bet on yet.

The room knows rows of numbers and labels, and nothing of outputs, claims or tests. A *reduction* turns a row into one
number (`dpaudit.learning.reductions`); a *learner* looks at training draws and proposes *predictors*: a reduction with
the cells that its numbers fall into (`dpaudit.learning.predictors`). Each kind of learner is a file of
`dpaudit.learning.kinds`; another file there is another kind.

Validity: predictors are functions of training draws alone. What they are worth is decided by draws that come later.
"""
