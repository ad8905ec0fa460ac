"""Functions beyond the elementary, order along an axis, and counts of values."""
import math

import torch

from aten.calls import I, L, T, case


def special_functions():
    """Away from the kinks of each function's formulas, at them, and where they end."""
    ends = [0.0, 1.0, 2.0, -1.5, 8.0, 30.0, -30.0, math.inf]
    for name in "lgamma digamma i0 special_i0e special_i1 special_i1e sinc special_entr special_erfcx special_ndtr special_log_ndtr".split():
        case(name + ".default", self=T(12, lo=-3.9, hi=12))
        case(name + ".default", self=T(6, dtype="f64", lo=-3.9, hi=12), tol=[1e-11, 1e-12])
        case(name + ".default", self=L([x for x in ends if name not in ("i0", "special_i1") or math.isfinite(x)]))
        case(name + ".default", self=I(4, hi=9, lo=1))
    case("special_ndtri.default", self=L([0.0, 1e-20, 1e-5, 0.1, 0.3, 0.5, 0.8, 0.99, 1.0]))
    for name in ("special_bessel_j0", "special_bessel_j1"):  # torch's lacks a term: off by 1e-6
        case(name + ".default", self=T(12, lo=-20, hi=20))
    for order in (0, 1, 2, 5):
        case("polygamma.default", n=order, self=T(8, lo=0.2, hi=9))
    case("polygamma.default", n=1, self=T(5, lo=-2.9, hi=-2.1), tol=[1e-3, 1e-3])
    for p in (1, 2, 4):
        case("mvlgamma.default", self=T(2, 3, lo=2, hi=7), p=p)
    for name in ("special_gammaln", "special_digamma", "special_psi", "special_i0", "special_sinc"):
        case(name + ".default", self=T(3, lo=0.5, hi=3))
    case("special_multigammaln.default", self=T(3, lo=2, hi=3), p=2)
    case("special_polygamma.default", n=1, self=T(3, lo=0.5, hi=3))
    for name in ("special_modified_bessel_i0", "special_modified_bessel_i1"):
        case(name + ".default", self=T(3))
    case("special_xlog1py.default", self=T(4, lo=0), other=T(4, lo=0))
    case("special_xlog1py.other_scalar", self=L([0.0, 1.5, -2.0]), other=2.5)
    case("special_xlog1py.self_scalar", self=0, other=L([0.5, math.nan, 3.0]))
    case("erfc.default", self=L([-3.0, 0.5, 1.0, 4.0, 9.0, math.inf]), tol=[1e-5, 0])


def orders():
    special_functions()
