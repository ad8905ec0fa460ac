//===- DimText.h - what texts of dims are made of ---------------*- C++ -*-===//
#pragma once

#include "dmxc/Support/Dim.h"

namespace dmxc {

/// Names that stand without quotes.
bool isIdentifier(std::string_view name);
/// A call on dims in its simplest form.
Dim simplifiedCall(Dim::Call call, Dim a, Dim b);

} // namespace dmxc
