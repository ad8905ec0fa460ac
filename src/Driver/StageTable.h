//===- StageTable.h - what a compile means at each of its stops -*- C++ -*-===//
#pragma once

#include "dmxc/Driver/Compilation.h"

#include <iosfwd>

namespace dmxc::driver {

/// Fails, by name, where a target evaluates no stages; the host's kernels are DMIR, which the reference knows.
Status checkStages(const PhaseContext &context);

/// The modules of a compile's stops, evaluated on the same inputs and compared with one another.
class StageTable {
public:
  /// `texts`: a folder whose files of --dump-phases take the place of stops; "" = none. The compilation and
  /// the inputs must outlive the table.
  StageTable(Compilation &compilation, std::string entry, const std::vector<Tensor> &inputs, std::string texts)
      : compilation(compilation), entry(std::move(entry)), inputs(inputs), texts(std::move(texts)) {}

  /// The compile is at a stop, for the first time or again.
  void add(const std::string &stop);
  /// Prints a line a stop, and one for the bundle's run where it gave outputs. ErrorKind::Mismatch names the first stop
  /// that is wrong.
  Status compare(const std::vector<Tensor> &ran, std::ostream &out);

private:
  struct Row {
    std::string stop, file;
    mlir::OwningOpRef<mlir::ModuleOp> module;
  };
  /// What the outputs of one stop are to those of the stop before.
  struct Difference {
    bool isEqual = true;
    double sqnr = 0; ///< dB; of the noisiest output
    std::string what;
  };
  Result<std::vector<Tensor>> evaluate(Row &row);
  Status replaceByText(Row &row);
  Difference differenceOf(const std::vector<Tensor> &now, const std::vector<Tensor> &before) const;
  /// A line; keeps what is wrong first.
  void judge(const std::string &stop, const std::vector<Tensor> &now, std::ostream &out);

  Compilation &compilation;
  std::string entry;
  const std::vector<Tensor> &inputs;
  std::string texts;
  std::vector<Row> rows;
  std::vector<Tensor> last; ///< outputs of the last stop that was evaluated
  std::string lastStop, wrong;
  std::optional<double> rounding; ///< SQNR of the first stop with the target's numbers
};

} // namespace dmxc::driver
