//===- Recurrent.h - RNN, GRU and LSTM --------------------------*- C++ -*-===//
#pragma once

#include "../Emitter.h"

#include <optional>
#include <string>

namespace dmxc::frontend {

/// What a recurrent layer is beside its operands.
struct RecurrentOptions {
  std::string direction = "forward"; ///< or reverse, bidirectional
  std::optional<int64_t> hiddenSize; ///< what the weights say where it is not given
  double clip = 0;                   ///< bounds what activations take; 0: nothing does
  bool batchFirst = false;           ///< of the input, the states and the results
  bool linearBeforeReset = false;    ///< GRU: the reset gate acts behind the product
  bool coupled = false;              ///< LSTM: what the input gate takes, the forget gate leaves
  /// Functions of all directions by name (Activation.h), with the parameters of those that have some, in order.
  std::optional<std::vector<std::string>> activations;
  std::vector<double> alphas, betas;
  std::vector<bool> wanted = {true, true, true};
};

// One layer, in both directions or one. Operands, of which the last six may be null or missing: the input [time,
// batch, input], weights [dirs, gates * h, input], recurrent weights [dirs, gates * h, h], biases [dirs, 2 * gates *
// h], a length for each batch entry, the initial states [dirs, batch, h]: hidden, then cells; peepholes [dirs, 3 * h]
// i, o, f; projections [dirs, p, h], with which the output and the hidden state, and so the recurrent weights' columns,
// have p numbers. Results: outputs [time, dirs, batch, h], final hidden states and, of an LSTM, final cells; null where
// not wanted.

std::vector<Val> rnn(Emitter &e, llvm::ArrayRef<Val> operands, const RecurrentOptions &o);
/// Gates in the order z, r, h.
std::vector<Val> gru(Emitter &e, llvm::ArrayRef<Val> operands, const RecurrentOptions &o);
/// Gates in the order i, o, f, c.
std::vector<Val> lstm(Emitter &e, llvm::ArrayRef<Val> operands, const RecurrentOptions &o);

} // namespace dmxc::frontend
