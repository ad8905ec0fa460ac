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

/// Writes a level's tiles as a strategy keeps them. A kind of tiles lists its fields once, in a function that calls
/// visit(key, field) of each number and truth value; a writer or a reader is the visitor.
class TileWriter {
public:
  explicit TileWriter(mlir::MLIRContext *context) : b(context) {}
  void operator()(llvm::StringRef key, int64_t value) { tiles.set(key, b.getI64IntegerAttr(value)); }
  void operator()(llvm::StringRef key, bool value) { tiles.set(key, b.getBoolAttr(value)); }
  mlir::DictionaryAttr take() { return tiles.getDictionary(b.getContext()); }

private:
  mlir::Builder b;
  mlir::NamedAttrList tiles;
};

/// Reads what TileWriter wrote; all fields are there.
class TileReader {
public:
  explicit TileReader(mlir::DictionaryAttr tiles) : tiles(tiles) {}
  void operator()(llvm::StringRef key, int64_t &value) const { value = *numberIn(tiles, key); }
  void operator()(llvm::StringRef key, bool &value) const { value = *flagIn(tiles, key); }

private:
  mlir::DictionaryAttr tiles;
};

} // namespace dmxc::cpu
