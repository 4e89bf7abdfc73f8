"""The chances of each of some noisy numbers to be the largest, by quadrature."""

from fractions import Fraction

from dpaudit.symbolic.enclosures import Node
from dpaudit.symbolic.orders import Component, by_quadrature
from dpaudit.symbolic.piecewise import Comparison


def chances_of_largest(scores, law):
    nodes = tuple((k, Node(law)) for k in range(len(scores)))
    gaps = [[Fraction(best) - Fraction(score) for score in scores] for best in scores]
    stars = [tuple(Comparison(j, k, gaps[k][j]) for j, _ in nodes if j != k) for k, _ in nodes]
    return [by_quadrature(Component(nodes, star)) for star in stars]
