"""Functions beyond the elementary, order along an axis, and counts of values."""
import math

import torch

from aten.calls import I, L, T, case


def special_functions():
    """Away from the kinks of each function's formulas, at them, and where they end."""
    ends = [0.0, 1.0, 2.0, -1.5, 8.0, 30.0, -30.0, math.inf]
    for name in "lgamma digamma i0 special_i0e special_i1 special_i1e sinc special_entr special_erfcx special_ndtr special_log_ndtr".split():
        case(name + ".default", self=T(12, lo=-3.9, hi=12))
        case(name + ".default", self=T(6, dtype="f64", lo=-3.9, hi=12), tolerance=[1e-11, 1e-12])
        case(name + ".default", self=L([x for x in ends if name not in ("i0", "special_i1") or math.isfinite(x)]))
        case(name + ".default", self=I(4, hi=9, lo=1))
    case("special_ndtri.default", self=L([0.0, 1e-20, 1e-5, 0.1, 0.3, 0.5, 0.8, 0.99, 1.0]))
    for name in ("special_bessel_j0", "special_bessel_j1"):  # torch's lacks a term: off by 1e-6
        case(name + ".default", self=T(12, lo=-20, hi=20))
    for order in (0, 1, 2, 5):
        case("polygamma.default", n=order, self=T(8, lo=0.2, hi=9))
    case("polygamma.default", n=1, self=T(5, lo=-2.9, hi=-2.1), tolerance=[1e-3, 1e-3])
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
    case("erfc.default", self=L([-3.0, 0.5, 1.0, 4.0, 9.0, math.inf]), tolerance=[1e-5, 0])


def running_and_middles():
    """Ties, NaN and infinities; of equal elements, which one an operator names is not torch's promise."""
    x, ties = T(3, 4, 5), I(3, 7)
    holes = torch.where(x > 1, torch.tensor(math.nan), x)
    for name in ("cummax", "cummin"):
        for values, dim in ((x, 1), (holes, -1), (ties, 1), (T(4, dtype="bool"), 0), (L(2.5), 0), (I(5, dtype="u8"), 0)):
            case(name + ".default", self=values, dim=dim)
    case("logcumsumexp.default", self=torch.cat([x, L([[[-math.inf] * 5] * 4])]), dim=0)
    case("logcumsumexp.default", self=T(7, dtype="f64", lo=-90, hi=90), dim=0)
    case("kthvalue.default", self=x, k=3, dim=1)
    case("kthvalue.default", self=ties, k=1, keepdim=True, results=(0,))
    for name in ("median", "nanmedian"):
        for values in (x, holes, ties):
            case(name + ".default", self=values)
            case(name + ".dim", self=values, dim=0, keepdim=True, results=(0,))
        case(name + ".dim", self=x, dim=-1)
    case("mode.default", self=ties, dim=1)
    case("mode.default", self=I(9, 2, dtype="i32"), dim=0, keepdim=True)
    for name, values in (("quantile", x), ("nanquantile", holes), ("quantile", holes)):
        for mode in ("linear", "lower", "higher", "nearest", "midpoint"):
            case(name + ".scalar", self=values, q=0.3, dim=1, interpolation=mode)
        case(name + ".default", self=values, q=L([0.1, 0.4, 0.95]), dim=0, keepdim=True)
        case(name + ".default", self=values, q=L([0.1, 0.4, 0.95]))
    for dim in (None, 1):
        case("aminmax.default", self=x, dim=dim, keepdim=True)
    case("_aminmax.default", self=holes)
    case("_aminmax.dim", self=x, dim=0)


def members_and_counts():
    """Sizes that a run decides among them."""
    x, tests = I(3, 5, hi=9), I(4, hi=9)
    case("isin.Tensor_Tensor", elements=x, test_elements=tests)
    case("isin.Tensor_Tensor", elements=x, test_elements=L([1.0, 2.5]), invert=True)
    case("isin.Tensor_Scalar", elements=x, test_element=4)
    case("isin.Scalar_Tensor", element=4, test_elements=x)
    for values in (I(12, hi=5), I(3, 4, dtype="i32"), L([1.0, 1.0, -2.0, 0.5, 0.5, 1.0]), T(5, dtype="bool")):
        case("_unique.default", self=values, return_inverse=True)
        case("_unique2.default", self=values, return_inverse=True, return_counts=True)
        case("_unique2.default", self=values)
        case("unique_consecutive.default", self=values, return_inverse=True, return_counts=True)
    rows = I(7, 2, 2, hi=2)
    for dim in (0, -1):
        case("unique_dim.default", self=rows, dim=dim, return_inverse=True, return_counts=True)
        case("unique_consecutive.default", self=rows, dim=dim, return_inverse=True, return_counts=True)
    case("unique_dim_consecutive.default", self=rows, dim=0, return_inverse=True, return_counts=True)
    case("bincount.default", self=I(20, hi=7))
    case("bincount.default", self=I(20, hi=7), weights=T(20), minlength=9)
    case("bincount.default", self=I(6, dtype="i32"), weights=I(6))
    for name, arguments in (("bin_ct", {"bins": 5}), ("bin_ct", {"bins": 4, "range": [-1.0, 1.0], "density": True}),
                            ("bins_tensor", {"bins": L([-1.0, 0.0, 0.5, 2.0])})):
        case("histogram." + name, self=T(30), **arguments)
        case("histogram." + name, self=T(5, 6), weight=T(5, 6, lo=0), **arguments)
    values = T(2, 3, 4)
    case("repeat_interleave.Tensor", repeats=L([2, 0, 3], "i64"))
    case("repeat_interleave.self_Tensor", self=values, repeats=L([2, 0, 3], "i64"), dim=1)
    case("repeat_interleave.self_Tensor", self=values, repeats=L([2, 0, 1, 1], "i32"), dim=-1, output_size=4)
    case("repeat_interleave.self_Tensor", self=T(2, 2), repeats=L([2, 0, 3, 1], "i64"))
    for mask in (values > 0, I(3), L(2.0)):
        case("nonzero_numpy.default", self=mask)
        case("argwhere.default", self=mask)


def slopes_and_areas():
    x = T(4, 5)
    lines = [L([0.0, 1.0, 3.0, 3.5]), L([0.0, 2.0, 3.0, 7.0, 8.0])]
    for edges in (1, 2):
        case("gradient.scalarint", self=x, spacing=0.5, edge_order=edges)
        case("gradient.scalarint", self=x, dim=1, edge_order=edges)
        case("gradient.array", self=x, dim=[1, 0], edge_order=edges)
        case("gradient.scalararray", self=x, spacing=2.0, dim=[-1], edge_order=edges)
        case("gradient.scalarrayint", self=x, spacing=[0.5, 3.0], edge_order=edges)
        case("gradient.scalarrayarray", self=x, spacing=[0.5, 3.0], dim=[1, 0], edge_order=edges)
        case("gradient.tensorarrayint", self=x, spacing=lines, edge_order=edges)
        case("gradient.tensorarray", self=x, spacing=lines[1:], dim=[1], edge_order=edges)
    case("cumulative_trapezoid.dx", y=x, dx=0.5)
    case("cumulative_trapezoid.x", y=x, x=lines[0], dim=0)
    case("cumulative_trapezoid.x", y=x, x=T(4, 5))
    for p, dim in ((2, 0), (1, -1), (math.inf, 1)):
        case("renorm.default", self=T(3, 4, 2), p=p, dim=dim, maxnorm=1.5)


def orders():
    special_functions()
    running_and_middles()
    members_and_counts()
    slopes_and_areas()
