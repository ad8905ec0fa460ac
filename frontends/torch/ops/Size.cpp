//===- Size.cpp - sizes, scalars of tensors, assertions -------------------===//
#include "Math.h"

using namespace dmxc::dmir;

namespace dmxc::torchfe {
namespace {

void importSize(AtenContext &c) {
  Val x = c.tensor("self");
  c.result(Arg::integer(x.extent(c.axis("dim", x.rank()))));
}
void importSizes(AtenContext &c) { c.result(Arg::intList(c.tensor("self").dims())); }
void importNumel(AtenContext &c) { c.result(Arg::integer(c.tensor("self").elements())); }
/// Of a tensor in row-major order, which every value is here.
void importStride(AtenContext &c) {
  Val x = c.tensor("self");
  int64_t axis = c.axis("dim", x.rank());
  Dim stride = 1;
  for (int64_t i = axis + 1; i < x.rank(); ++i)
    stride *= x.extent(i);
  c.result(Arg::integer(stride));
}
void importOffset(AtenContext &c) { c.result(Arg::integer(0)); }
void importIsContiguous(AtenContext &c) { c.result(Arg::flag(true)); }

/// The number in a tensor of one element. An integer becomes a size, which must not be negative then.
void importItem(AtenContext &c) {
  Val x = c.e.reshape(c.tensor("self"), {});
  if (isInt(x.dtype()))
    return c.result(Arg::integer(c.e.dimsOf(c.e.reshape(c.cast(x, DType::I64), {1}))[0]));
  if (x.dtype() == DType::Bool)
    return c.result(Arg::computed(Arg::Kind::Bool, x));
  c.result(Arg::computed(Arg::Kind::Float, c.cast(x, DType::F64)));
}

} // namespace

void ignoreAssertion(AtenContext &) {}

std::vector<AtenRow> sizeOps() {
  const char *ordered = "as of a tensor in row-major order";
  return {
      {"sym_size.int(Tensor self, int dim) -> SymInt", importSize},
      {"size.int(Tensor self, int dim) -> int", importSize},
      {"size(Tensor self) -> int[]", importSizes},
      {"sym_numel(Tensor self) -> SymInt", importNumel},
      {"numel(Tensor self) -> int", importNumel},
      {"sym_stride.int(Tensor self, int dim) -> SymInt", importStride, ordered},
      {"sym_storage_offset(Tensor self) -> SymInt", importOffset, ordered},
      {"sym_is_contiguous(Tensor self, MemoryFormat memory_format=contiguous_format) -> SymBool", importIsContiguous,
       ordered},
      {"item(Tensor self) -> Scalar", importItem, "an integer must not be negative"},
      {"_local_scalar_dense(Tensor self) -> Scalar", importItem, "an integer must not be negative"},
      {"_assert_scalar(Scalar self, str assert_msg) -> ()", ignoreAssertion, "not checked"},
      {"_assert_async.msg(Tensor self, str assert_msg) -> ()", ignoreAssertion, "not checked"},
      {"_linalg_check_errors(Tensor info, str api_name, *, bool is_matrix) -> ()", ignoreAssertion, "not checked"},
      {"_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, ScalarType? dtype=None, *, "
       "Device? "
       "device=None, Layout? layout=None) -> ()",
       ignoreAssertion, "not checked"},
      {"sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", ignoreAssertion,
       "not checked"},
      {"sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", ignoreAssertion, "not checked"},
  };
}

} // namespace dmxc::torchfe
