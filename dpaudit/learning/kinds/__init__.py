"""The kinds of learners, one file each: a function `propose(training)` that gives predictors.

Every module here is found by itself, in the order of the names (`dpaudit.learning.predictors.learners`). Another
package adds one with an entry point of the group `dpaudit.learners`.
"""
