//===- UserMapping.h - kernels of users on an array of cores ----*- C++ -*-===//
//
// What of its tensors a core has at once, its part, says the kernel file: some of the rows, which all cores share out,
// or a stretch of a dim along which one core is called again and again for the same results; else all of them. A part
// is what its function would be given whole.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/aie/place/Mapping.h"

#include "dmxc/Dialect/DMIR/Kernels.h"
#include "dmxc/Support/Result.h"

namespace dmxc::aie {

/// An operand or a result. In DDR it lies as rows of a pitch, each of as many stretches as there are steps.
struct UserTensor {
  std::string name;
  unsigned argument = 0; ///< of the region, or the number of the result
  mlir::RankedTensorType tensor;
  llvm::StringRef kind;                                       ///< of its elements, in the array's DDR
  int64_t bytes = 4;                                          ///< of one
  bool isResult = false, isShared = false, isStepped = false; ///< shared: one for all cores of a column
  int64_t rows = 1;                                           ///< of a part
  int64_t allRows = 1;                                        ///< that the host has
  int64_t stretch = 1;                                        ///< elements of a row of a part
  int64_t pitch = 1;                                          ///< elements from row to row
  llvm::SmallVector<int64_t> strides;                         ///< a dim of the host's, in elements of the form

  int64_t part() const { return rows * stretch; }
  int64_t partBytes() const { return part() * bytes; }
  /// Of which so many are a stretch: what one dim of a BD counts; 0 where none is.
  int64_t run() const;
  bool operator==(const UserTensor &) const = default;
};

struct UserMapping {
  std::string kernel, symbol, library;
  mlir::DictionaryAttr body;
  std::vector<UserTensor> tensors; ///< operands, then results
  size_t results = 1;
  int64_t herdRows = 1, herdColumns = 1;
  int64_t rows = 1, allRows = 1;            ///< that a core has at once, and all of them
  int64_t steps = 1, step = 1, allStep = 1; ///< calls for the same results; what each goes on by, and to where
  int64_t items = 1, cycles = 0;            ///< the work of a call that takes no step; clocks of a call
  llvm::SmallVector<int64_t> dims;          ///< what a call is told

  bool isResult(size_t tensor) const { return tensor + results >= tensors.size(); }
  int64_t ofColumn() const { return herdRows * rows; }
  int64_t blockRows() const { return herdColumns * ofColumn(); }
  int64_t blocks() const { return (allRows + blockRows() - 1) / blockRows(); }
  /// Rows of a form; zeros behind what the host has.
  int64_t formRows(const UserTensor &tensor) const { return tensor.isShared ? 1 : blocks() * blockRows(); }
  /// Those that come by the channel of rows or of what is shared, or are results.
  llvm::SmallVector<size_t> of(bool isShared) const;
  llvm::SmallVector<size_t> ofResults() const;
  /// Expected; as RowMapping::clocks.
  int64_t clocks(const hw::Machine &machine) const;
  /// For reports.
  std::string text(const hw::Machine &machine) const;
};

/// The body that a machine's cores run; null where there is none.
mlir::DictionaryAttr userBody(const hw::Machine &machine, dmir::ExternOp op);
/// How cores compute it; in its region operands are arguments. Fails, in a clause, where the array does not hold it.
Result<UserMapping> userMappingOf(const hw::Machine &machine, const Herd &most, dmir::ExternOp op);
Result<mlir::DictionaryAttr> userStrategy(const hw::Machine &machine, const Herd &most, dmir::RegionOp region);

/// The program of grids of units.
dlir::DeviceProgramOp writeUser(mlir::OpBuilder &builder, mlir::Location where, const hw::Machine &machine,
                                llvm::StringRef name, const UserMapping &mapping);

} // namespace dmxc::aie
