//===- TileDecisions.h - what decisions of tiles share ----------*- C++ -*-===//
//
// Products and convolutions list what is free of their tiles, read what is decided, and write the tiles to the strategy
// with these.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "code/IsaLevel.h"

#include "dmxc/Target/Decision.h"

#include "mlir/IR/Builders.h"

#include <optional>
#include <set>
#include <vector>

namespace dmxc::cpu {

/// A number or a truth value of a dictionary, which may be null.
std::optional<int64_t> numberIn(mlir::DictionaryAttr dictionary, llvm::StringRef key);
std::optional<bool> flagIn(mlir::DictionaryAttr dictionary, llvm::StringRef key);
/// Of what is decided (may be null) that which the domains have.
mlir::DictionaryAttr ofDomains(llvm::ArrayRef<Decision> decisions, mlir::DictionaryAttr decided);
/// A domain of numbers in ascending order.
Domain numbersOf(const std::set<int64_t> &numbers, mlir::MLIRContext *context);
/// 1 to `most`; where `count` things are shared out evenly in parts of that size, those which give as many parts are
/// one member.
std::set<int64_t> evenParts(int64_t count, int64_t most);

/// Collects the decisions of a level that leave a choice, and says what `decided` (may be null) has of each: what
/// others rest on. Of values that a domain lacks nothing follows.
class FreeTiles {
public:
  FreeTiles(const IsaLevel &isa, mlir::MLIRContext *context, mlir::DictionaryAttr decided)
      : isa(isa), b(context), decided(decided) {}

  /// `values` and the one that is preferred.
  std::optional<int64_t> number(llvm::StringRef name, std::set<int64_t> values, int64_t preferred, Effect effect,
                                const char *help);
  std::optional<bool> flag(llvm::StringRef name, bool preferred, Effect effect, const char *help);
  std::vector<Decision> take() { return std::move(all); }

private:
  std::optional<int64_t> add(llvm::StringRef name, Domain domain, mlir::Attribute preferred, Effect effect,
                             const char *help);

  const IsaLevel &isa;
  mlir::Builder b;
  mlir::DictionaryAttr decided;
  std::vector<Decision> all;
};

/// A level's tiles as a strategy keeps them; numberIn and flagIn read them.
class TileWriter {
public:
  explicit TileWriter(mlir::MLIRContext *context) : b(context) {}

  TileWriter &number(llvm::StringRef name, int64_t value) { return set(name, b.getI64IntegerAttr(value)); }
  TileWriter &flag(llvm::StringRef name, bool value) { return set(name, b.getBoolAttr(value)); }
  mlir::DictionaryAttr take() { return tiles.getDictionary(b.getContext()); }

private:
  TileWriter &set(llvm::StringRef name, mlir::Attribute value) {
    tiles.set(name, value);
    return *this;
  }

  mlir::Builder b;
  mlir::NamedAttrList tiles;
};

} // namespace dmxc::cpu
