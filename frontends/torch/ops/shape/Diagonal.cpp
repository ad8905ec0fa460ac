//===- Diagonal.cpp - diagonals and triangles of matrices -----------------===//
#include "../Math.h"
#include "../View.h"

#include <algorithm>

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

/// Far beyond any matrix; keeps sums with it from overflowing.
constexpr int64_t kMaxOffset = int64_t(1) << 46;

int64_t offsetOf(AtenContext &c, const char *name) {
  int64_t offset = c.integer(name);
  c.require(-kMaxOffset <= offset && offset <= kMaxOffset, "the offset is too large");
  return offset;
}

/// The last two axes brought to `first` and `second`, the others in order.
std::vector<int64_t> lastTwoTo(int64_t first, int64_t second, int64_t rank) {
  std::vector<int64_t> order(rank);
  for (int64_t axis = 0, next = 0; axis < rank; ++axis)
    order[axis] = axis == first ? rank - 2 : axis == second ? rank - 1 : next++;
  return order;
}

/// `values` [.., n] on the diagonal of matrices [.., rows, columns], which elsewhere are `around` or, where that is
/// null, 0.
Val withDiagonal(Emitter &e, const Val &around, const Val &values, int64_t offset, Dim rows, Dim columns) {
  Dims column = values.dims(), low(values.rank() + 1, 0), high = low, matrices = values.dims();
  const Dim length = column.back(), above = offset < 0 ? -offset : 0;
  column.push_back(1);
  matrices.back() = rows;
  matrices.push_back(columns);
  low[values.rank() - 1] = above;
  high[values.rank() - 1] = rows - above - length;
  Val spread = e.pad(e.reshape(values, column), e.scalar(values.dtype(), 0), low, high);
  Val row = e.iota(DType::I64, {rows, 1}, 0), across = e.iota(DType::I64, {1, columns}, 1);
  Val on = e.compare(Compare::eq, across, e.add(row, e.intScalar(DType::I64, offset)));
  return e.select(on, e.broadcast(spread, matrices), around ? around : e.scalar(values.dtype(), 0));
}

/// Square matrices with the last axis of `x` on the diagonal.
Val embedded(AtenContext &c, const Val &x, int64_t offset) {
  c.require(std::abs(offset) <= int64_t(1) << 20, "the offset is too large");
  Dim size = x.extent(-1) + std::abs(offset);
  return withDiagonal(c.e, Val(), x, offset, size, size);
}

void importDiag(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() == 1 || x.rank() == 2, "diag takes a vector or a matrix");
  int64_t offset = offsetOf(c, "diagonal");
  c.result(x.rank() == 1 ? embedded(c, x, offset) : diagonalOf(c.e, x, offset, 0, 1));
}
void importDiagFlat(AtenContext &c) {
  Val line = c.e.reshape(c.tensor("self"), {c.tensor("self").elements()});
  c.result(embedded(c, line, offsetOf(c, "offset")));
}
void importDiagEmbed(AtenContext &c) {
  Val x = c.tensor("self");
  c.requireShape(x.rank() > 0, "a scalar has no axis to make a diagonal of");
  int64_t rank = x.rank() + 1, first = c.axis("dim1", rank), second = c.axis("dim2", rank);
  c.require(first != second, "the two axes are one");
  c.result(c.e.transpose(embedded(c, x, offsetOf(c, "offset")), lastTwoTo(first, second, rank)));
}

/// Where torch's diagonal() would read, `src` stands.
void importDiagonalScatter(AtenContext &c) {
  Val x = c.tensor("self"), src = c.cast(c.tensor("src"), x.dtype());
  c.requireShape(x.rank() >= 2, "expected a matrix");
  int64_t rank = x.rank(), first = c.axis("dim1", rank), second = c.axis("dim2", rank), offset = offsetOf(c, "offset");
  c.require(first != second, "the two axes are one");
  Dims dims;
  for (int64_t axis = 0; axis < rank; ++axis)
    if (axis != first && axis != second)
      dims.push_back(x.extent(axis));
  Dim rows = x.extent(first), columns = x.extent(second);
  dims.push_back(Dim::max(Dim::min(rows + std::min<int64_t>(offset, 0), columns - std::max<int64_t>(offset, 0)), 0));
  c.requireShape(mayEqual(src.dims(), dims),
                 "src is " + src.describe() + ", but the diagonal has the shape " + dimsString(dims));
  std::vector<int64_t> order = lastTwoTo(first, second, rank), back(rank);
  for (int64_t axis = 0; axis < rank; ++axis)
    back[order[axis]] = axis;
  Val matrices = c.e.transpose(x, back);
  Val values = dims.back().is(0) ? Val() : c.e.expectDims(src, dims);
  c.result(values ? c.e.transpose(withDiagonal(c.e, matrices, values, offset, rows, columns), order) : x);
}

/// The main diagonal; of more than two axes that on which all indices are equal. `wrap` begins it again below a block
/// of as many rows as there are columns, and one.
void importFillDiagonal(AtenContext &c) {
  Emitter &e = c.e;
  Val x = c.tensor("self"), value = c.cast(c.operand("fill_value").value, x.dtype());
  const int64_t rank = x.rank();
  c.requireShape(rank >= 2, "expected a matrix or more axes");
  for (int64_t axis = 1; axis < rank && rank > 2; ++axis)
    c.requireShape(mayEqual(x.extent(axis), x.extent(0)), "of more than two axes all must have one size");
  auto position = [&](int64_t axis) {
    Dims line(rank, 1);
    line[axis] = x.extent(axis);
    return e.iota(DType::I64, line, axis);
  };
  Val first = position(0), on;
  if (rank == 2 && c.flag("wrap"))
    first = e.emit<ModOp>({first, e.size(x.extent(1) + 1)});
  for (int64_t axis = 1; axis < rank; ++axis) {
    Val same = e.compare(Compare::eq, first, position(axis));
    on = on ? both(e, on, same) : same;
  }
  c.result(e.select(on, value, x));
}

/// Matrices along the diagonal of one; a vector is a row.
void importBlockDiag(AtenContext &c) {
  Emitter &e = c.e;
  std::vector<Operand> operands;
  for (const Val &tensor : c.tensors("tensors")) {
    c.requireShape(tensor.rank() <= 2, "the tensors have up to two axes");
    operands.push_back({tensor, false});
  }
  c.require(!operands.empty(), "there must be at least one tensor");
  std::vector<Val> blocks = promote(c, operands);
  Dim width = 0, at = 0;
  for (Val &block : blocks) {
    block = e.reshape(block, {block.rank() == 2 ? block.extent(0) : Dim(1), block.rank() ? block.extent(-1) : Dim(1)});
    width += block.extent(1);
  }
  for (Val &block : blocks) {
    Dim end = at + block.extent(1);
    block = e.pad(block, e.scalar(block.dtype(), 0), {0, at}, {0, width - end});
    at = end;
  }
  c.result(e.concat(blocks, 0));
}

/// Row and column of the elements on one side of a diagonal, in row-major order.
template <bool upper> void importTriangleIndices(AtenContext &c) {
  const int64_t rows = c.integer("row"), columns = c.integer("col"), offset = offsetOf(c, "offset");
  constexpr int64_t most = int64_t(1) << 24;
  c.require(rows >= 0 && columns >= 0 && rows <= most / std::max<int64_t>(columns, 1),
            "the matrix must have up to " + std::to_string(most) + " elements");
  std::vector<int64_t> both, second;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t border = row + offset, first = upper ? std::max<int64_t>(border, 0) : 0;
    for (int64_t column = first; column < (upper ? columns : std::min(border + 1, columns)); ++column) {
      both.push_back(row);
      second.push_back(column);
    }
  }
  both.insert(both.end(), second.begin(), second.end());
  c.result(c.cast(c.e.reshape(c.e.ints(both), {2, static_cast<int64_t>(second.size())}), c.type("dtype", DType::I64)));
}

} // namespace

std::vector<AtenRow> diagonalOps() {
#define TRIANGLE                                                                                                       \
  "(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, Device? device=None, bool? "       \
  "pin_memory=None) -> Tensor"
  return {
      {"diag(Tensor self, int diagonal=0) -> Tensor", importDiag},
      {"diagflat(Tensor self, int offset=0) -> Tensor", importDiagFlat},
      {"diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", importDiagEmbed},
      {"diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
       importDiagonalScatter},
      {"fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)", importFillDiagonal},
      {"block_diag(Tensor[] tensors) -> Tensor", importBlockDiag},
      {"tril_indices" TRIANGLE, importTriangleIndices<false>},
      {"triu_indices" TRIANGLE, importTriangleIndices<true>},
  };
#undef TRIANGLE
}

} // namespace dmxc::torchfe
