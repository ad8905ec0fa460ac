//===- AtenTable.h - one row per ATen overload ------------------*- C++ -*-===//
#pragma once

#include "reader/Schema.h"

#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace dmxc::torchfe {

class AtenContext;
using ImportFn = void (*)(AtenContext &);

/// How one overload is imported.
struct AtenRow {
  const char *signature; ///< as torch declares it, of other libraries with theirs; the defaults stand in it
  ImportFn import;       ///< null: refused, `note` says why
  const char *note = ""; ///< a limit of the import, or the reason of the refusal
};

/// A row with its signature taken apart.
struct AtenOp {
  AtenRow row;
  Schema schema;
};

/// All overloads; built once, immutable.
class AtenTable {
public:
  static const AtenTable &get();
  /// By "add.Tensor", of other libraries "torchvision.nms.default"; null when there is none.
  const AtenOp *find(std::string_view name) const;
  /// The functional form of an in-place overload: of "add_.Tensor" that is "add.Tensor".
  const AtenOp *findInPlace(std::string_view name) const;
  /// Nearest known name, for "did you mean".
  std::string nearest(const std::string &name) const;
  const std::map<std::string, AtenOp, std::less<>> &ops() const { return all; }

private:
  AtenTable();
  void add(const AtenRow &row);
  void addSecondNames();
  void addRefused();
  std::map<std::string, AtenOp, std::less<>> all;
  std::list<std::string> signatures; ///< those that are made here; rows point into them
};

/// Of assertions, which give nothing: what the exporter has checked or a run checks anyway. Sizes that do not fit fail
/// where they are used. What only they read is not imported.
void ignoreAssertion(AtenContext &);

/// The name by which the table knows what a program calls: "add.Tensor" for torch.ops.aten.add.Tensor,
/// "torchvision.nms.default" for torch.ops.torchvision.nms.default; empty for what is no operator of a library.
std::string_view operatorName(std::string_view target);
/// Whether it is ATen's, not another library's.
bool isAten(std::string_view target);

// The families; each is defined in ops/<Family>.cpp.
std::vector<AtenRow> elementwiseOps();
std::vector<AtenRow> selectOps();
std::vector<AtenRow> activationOps();
std::vector<AtenRow> viewOps();
std::vector<AtenRow> joinOps();
std::vector<AtenRow> createOps();
std::vector<AtenRow> reduceOps();
std::vector<AtenRow> indexOps();
std::vector<AtenRow> productOps();
std::vector<AtenRow> attentionOps();
std::vector<AtenRow> convolutionOps();
std::vector<AtenRow> poolOps();
std::vector<AtenRow> normOps();
std::vector<AtenRow> lossOps();
std::vector<AtenRow> resampleOps();
std::vector<AtenRow> recurrentOps();
std::vector<AtenRow> sizeOps();
std::vector<AtenRow> complexOps();
std::vector<AtenRow> fourierOps();
std::vector<AtenRow> libraryOps();
std::vector<AtenRow> compositeOps();
std::vector<AtenRow> statisticsOps();
std::vector<AtenRow> columnOps();
std::vector<AtenRow> specialOps();
std::vector<AtenRow> orderOps();
std::vector<AtenRow> countingOps();
std::vector<AtenRow> differenceOps();
std::vector<AtenRow> fakeQuantizeOps();
std::vector<AtenRow> visionOps();
std::vector<AtenRow> diagonalOps();
std::vector<AtenRow> arrangeOps();
std::vector<AtenRow> bitOps();
std::vector<AtenRow> taperOps();
std::vector<AtenRow> marginLossOps();
std::vector<AtenRow> linearAlgebraOps();
std::vector<AtenRow> factorisationOps();
std::vector<AtenRow> singularValueOps();
std::vector<AtenRow> refusedOps();
/// Operators that are refused for one reason, by name.
struct RefusedFamily {
  const char *reason;
  std::vector<const char *> names;
};
std::vector<RefusedFamily> refusedFamilies();
/// Second names and the first ones, for all overloads: what torch calls multiply is mul.
std::vector<std::pair<std::string_view, std::string_view>> secondNames();
/// In-place overloads and the functional ones, where their names differ by more than the underscore.
std::map<std::string_view, std::string_view> functionalForms();

} // namespace dmxc::torchfe
