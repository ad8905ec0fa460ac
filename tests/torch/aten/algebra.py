"""Systems of equations, factors and functions of matrices."""
import torch

from aten.calls import I, L, T, case


def regular(size, *batch, dtype="f32"):
    """Matrices well away from those without an inverse."""
    return T(*batch, size, size, dtype=dtype) / 4 + 2 * torch.eye(size).to(T(1, dtype=dtype))


def positive(size, *batch):
    half = T(*batch, size, size) / 2
    return half @ half.transpose(-1, -2) + torch.eye(size)


def systems():
    """Determinants, inverses, systems of equations."""
    for size, batch in ((3, ()), (5, (2,)), (2, (0,))):
        x = regular(size, *batch)
        for name in "det inverse slogdet logdet".split():
            case(name + ".default", self=x)
        for name in "linalg_det linalg_slogdet linalg_inv linalg_inv_ex".split():
            case(name + ".default", A=x)
        case("_linalg_det.default", A=x, results=[0])
        case("_linalg_slogdet.default", A=x, results=[0, 1])
    case("linalg_inv.default", A=regular(5, dtype="f64"), tolerance=[1e-12, 1e-12])
    case("linalg_inv_ex.default", A=torch.ones(3, 3), results=[1])
    case("slogdet.default", self=torch.ones(3, 3))
    case("logdet.default", self=torch.diag(L([1.0, -2.0])))
    a, pivots = regular(3, 2), L([[2, 3, 3], [3, 2, 3]], "i32")
    for right in (T(2, 3), T(2, 3, 4), T(4, 1, 3, 2)):
        case("linalg_solve.default", A=a, B=right)
    case("linalg_solve.default", A=regular(6), B=T(6))
    case("linalg_solve_ex.default", A=a, B=T(2, 4, 3), left=False)
    for left in (True, False):
        right = T(2, 3, 3)
        case("_linalg_solve_ex.default", A=a, B=right, left=left, results=[0, 3])
        for adjoint in (True, False):
            case("linalg_lu_solve.default", LU=a, pivots=pivots, B=right, left=left, adjoint=adjoint)
        for upper in (True, False):
            case("linalg_solve_triangular.default", self=a[0].triu() if upper else a[0].tril(), B=right, upper=upper, left=left)
            case("triangular_solve.default", self=right, A=a, upper=upper, transpose=left, unitriangular=left)
    case("linalg_solve_triangular.default", self=torch.eye(6) + T(6, 6).triu(1), B=T(2, 6, 2), upper=True, unitriangular=True)
    case("lu_solve.default", self=T(2, 3, 2), LU_data=a, LU_pivots=pivots)
    case("linalg_tensorinv.default", self=T(2, 3, 6), ind=2)
    case("linalg_tensorsolve.default", self=T(3, 6, 2), other=T(6), dims=[0, 2])


def factors():
    """LU, QR and Cholesky."""
    for shape in ((2, 5, 3), (3, 6)):
        x = T(*shape)
        for name in "linalg_lu_factor linalg_lu_factor_ex linalg_lu linalg_qr".split():
            case(name + ".default", A=x)
        case("_lu_with_info.default", self=x)
        case("linalg_qr.default", A=x, mode="complete")
        case("geqrf.default", self=x)
    case("linalg_qr.default", A=T(3, 2), mode="r")
    case("linalg_lu.default", A=T(6, 6))
    lu, pivots = T(2, 4, 3), L([[2, 4, 3], [1, 4, 4]], "i32")
    case("lu_unpack.default", LU_data=lu, LU_pivots=pivots)
    case("lu_unpack.default", LU_data=lu, LU_pivots=pivots, unpack_data=False)
    case("lu_unpack.default", LU_data=lu, LU_pivots=pivots, unpack_pivots=False)
    case("linalg_lu_factor_ex.default", A=L([[0.0, 1.0, 2.0], [0.0, 3.0, 4.0], [0.0, 5.0, 6.0]]), results=[2])
    case("linalg_householder_product.default", input=T(2, 5, 3), tau=T(2, 2))
    case("orgqr.default", self=T(5, 3), input2=T(3))
    case("ormqr.default", self=T(5, 3), input2=T(3), input3=T(5, 2))
    case("ormqr.default", self=T(5, 3), input2=T(3), input3=T(2, 5), left=False, transpose=True)
    for upper, size, batch in ((False, 3, ()), (True, 5, (2,))):
        x = positive(size, *batch)
        for name in "cholesky linalg_cholesky linalg_cholesky_ex".split():
            case(name + ".default", self=x, upper=upper)
        factor = torch.linalg.cholesky(x).transpose(-1, -2) if upper else torch.linalg.cholesky(x)
        case("cholesky_solve.default", self=T(size, 2), input2=factor, upper=upper)
        case("cholesky_inverse.default", self=factor, upper=upper)
    case("linalg_cholesky_ex.default", self=torch.diag(L([1.0, -1.0, 3.0])), results=[1])


def singular_values():
    """Singular values, eigenvalues and what is made of them; vectors, whose signs are free, of diagonal matrices alone."""
    x, wide = T(2, 4, 3), T(3, 5)
    for values in (x, wide):
        case("linalg_svdvals.default", A=values)
        case("linalg_svd.default", A=values, results=[1])
        case("linalg_pinv.atol_rtol_tensor", self=values)
    case("svd.default", self=x, results=[1])
    case("svd.default", self=x, compute_uv=False)
    case("_linalg_svd.default", A=x, compute_uv=False)
    case("linalg_pinv.default", self=x, rcond=0.3)
    case("linalg_pinv.rcond_tensor", self=x, rcond=L(0.3))
    case("linalg_pinv.atol_rtol_float", self=x, atol=0.5)
    case("linalg_pinv.atol_rtol_tensor", self=torch.ones(3, 4), atol=L(1e-3))
    case("pinverse.default", self=wide)
    case("linalg_norm.default", self=x, ord=2, dim=[-2, -1])
    case("linalg_matrix_norm.default", self=x, ord=-2, dim=[2, 0], keepdim=True)
    case("linalg_matrix_norm.str_ord", self=x, ord="nuc")
    case("linalg_norm.ord_str", self=x, ord="nuc", dim=[0, 2])
    case("nuclear_norm.dim", self=x, dim=[-1, -2])
    case("nuclear_norm.default", self=wide)
    case("linalg_matrix_rank.default", self=x, tol=1.5)
    case("linalg_matrix_rank.atol_rtol_tensor", input=torch.ones(3, 4))
    case("linalg_matrix_rank.atol_rtol_float", self=x, atol=0.5, rtol=0.4)
    case("linalg_matrix_rank.tol_tensor", input=wide, tol=L(1.5))
    for order in (None, -2, 1):
        case("linalg_cond.default", self=regular(3, 2), p=order)
    for order in ("fro", "nuc"):
        case("linalg_cond.p_str", self=regular(3), p=order)
    for size, batch in ((2, ()), (5, (2,))):
        square = T(*batch, size, size)
        for triangle in "LU":
            case("linalg_eigvalsh.default", self=square, UPLO=triangle)
            case("linalg_eigh.default", self=square, UPLO=triangle, results=[0])
    case("_linalg_eigh.default", A=square, compute_v=False)
    case("linalg_pinv.atol_rtol_float", self=square + square.transpose(-1, -2), hermitian=True)
    case("linalg_matrix_rank.atol_rtol_tensor", input=square, hermitian=True)
    diagonal = torch.diag(L([2.0, 5.0, 1.0]))
    case("linalg_eigh.default", self=diagonal)
    case("linalg_svd.default", A=diagonal)


def matrix_functions():
    """Powers and exponentials of matrices, products."""
    for name in "matrix_exp linalg_matrix_exp".split():
        case(name + ".default", self=T(3, 3))
        case(name + ".default", self=T(2, 4, 4) * 6)
    case("matrix_exp.default", self=T(3, 3, dtype="f64") * 3, tolerance=[1e-12, 1e-12])
    for name in "matrix_power linalg_matrix_power".split():
        for n in (0, 5, -3):
            case(name + ".default", self=regular(3, 2), n=n)
    case("matrix_power.default", self=I(3, 3), n=3)
    case("vander.default", x=T(4))
    case("vander.default", x=I(4), N=3, increasing=True)
    case("linalg_vander.default", x=T(2, 4))
    case("linalg_vander.default", x=T(2, 3), N=5)
    case("vdot.default", self=T(5), other=T(5))
    case("addr.default", self=T(3), vec1=T(4), vec2=T(3), beta=0.5, alpha=2)
    case("addr.default", self=I(4, 3), vec1=I(4), vec2=I(3))
    case("addbmm.default", self=T(3), batch1=T(4, 2, 5), batch2=T(4, 5, 3), beta=0.5, alpha=2)
    case("addbmm.default", self=T(2, 3), batch1=T(4, 2, 5), batch2=T(4, 5, 3), beta=0)
    case("_int_mm.default", instead=lambda self, mat2: self.int() @ mat2.int(), self=I(20, 16, lo=-128, hi=128, dtype="i8"),
         mat2=I(16, 8, lo=-128, hi=128, dtype="i8"))
