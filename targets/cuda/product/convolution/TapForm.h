//===- TapForm.h - weights tap by tap ---------------------------*- C++ -*-===//
//
// Constant weights of a convolution as tensor cores multiply them: of each output the channels of one tap side by side,
// filled up to units of 16 bytes, tap after tap. Outputs of several groups of few are a set, a matrix that has zeros
// where an output meets channels of another group: a step of 64 terms has fewer zeros in it than one that a single
// group's taps fill.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "targets/common/roots/Contraction.h"

#include "dmxc/Support/Result.h"
#include "dmxc/Support/Tensor.h"

#include <span>

namespace dmxc::cuda {

struct TapForm {
  static constexpr llvm::StringLiteral kForm = "taps16";
  /// Channels of 16 bytes, and bytes of one.
  static constexpr int64_t kUnit = 8, kElementBytes = 2;

  int64_t outputs = 1;            ///< of all groups
  int64_t rows = 1, channels = 1; ///< of a group
  int64_t together = 1;           ///< groups of a set
  int64_t taps = 1;
  int64_t offset = 0,
          apart = 1; ///< elements of the weights in memory: where they begin, and from an output to the next

  /// Of a convolution whose sizes are known but the images, with places that 32 bits have; else nothing.
  static std::optional<TapForm> of(const kernels::Contraction &product);

  int64_t channelsOfSet() const { return together * channels; }
  int64_t unitsOfTap() const { return (channelsOfSet() + kUnit - 1) / kUnit; }
  /// Terms of an output.
  int64_t pitch() const { return taps * unitsOfTap() * kUnit; }
  int64_t bytes() const { return outputs * pitch() * kElementBytes; }

  mlir::DictionaryAttr write(mlir::MLIRContext *context) const;
  static bool is(mlir::DictionaryAttr form);
  /// Writes a constant as `form` says. An error where the form is none of it, as text may have it.
  static Status pack(mlir::DictionaryAttr form, const Tensor &constant, std::span<std::byte> out);

private:
  static void each(auto &form, auto &&visit) {
    visit("outputs", form.outputs), visit("rows", form.rows), visit("channels", form.channels);
    visit("together", form.together), visit("taps", form.taps), visit("offset", form.offset);
    visit("apart", form.apart);
  }
  bool fits(int64_t elements, size_t room) const;
};

} // namespace dmxc::cuda
