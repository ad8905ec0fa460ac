//===- Tiles.h - how a kernel is cut, as named numbers ----------*- C++ -*-===//
//
// A tile is a struct of numbers and truth values with one table of its fields:
//
//   struct Block {
//     int64_t rows = 1, depth = 1;
//     bool copies = false;
//     static llvm::ArrayRef<TileField<Block>> fields(); // {"rows", &Block::rows, "rows of a block", Effect::Order}, ..
//   };
//
// The table makes all else: the dictionary that a strategy keeps and its reader, the decisions that --explain-decisions
// lists and transform.dmx.decide takes, and what is said of text that has it otherwise.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "dmxc/Support/Result.h"
#include "dmxc/Target/Decision.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace dmxc::kernels {

template <typename Tile> struct TileField {
  using Member = std::variant<int64_t Tile::*, bool Tile::*>;

  llvm::StringLiteral key;
  Member member;
  const char *help = nullptr; ///< a clause; null: the field follows from the others and is never decided
  Effect effect = Effect::Bits;
};

/// A number or a truth value of a dictionary, which may be null.
std::optional<int64_t> numberIn(mlir::DictionaryAttr dictionary, llvm::StringRef key);
/// A field's value as dictionaries have it.
mlir::Attribute tileValue(int64_t value, mlir::MLIRContext *context);
mlir::Attribute tileValue(bool value, mlir::MLIRContext *context);
/// A domain of numbers in ascending order.
Domain numbersOf(const std::set<int64_t> &numbers, mlir::MLIRContext *context);
/// 1 to `most`; where `count` things are shared out evenly in parts of that size, those which give as many parts are
/// one member.
std::set<int64_t> evenParts(int64_t count, int64_t most);

/// A tile as a strategy keeps it.
template <typename Tile> mlir::DictionaryAttr writeTile(const Tile &tile, mlir::MLIRContext *context) {
  mlir::NamedAttrList written;
  for (const TileField<Tile> &field : Tile::fields())
    std::visit([&](auto member) { written.set(field.key, tileValue(tile.*member, context)); }, field.member);
  return written.getDictionary(context);
}

/// Reads what writeTile wrote. Fields that are not there stay as they are in `tile`.
template <typename Tile> Tile readTile(mlir::DictionaryAttr written, Tile tile = {}) {
  for (const TileField<Tile> &field : Tile::fields())
    if (std::optional<int64_t> value = numberIn(written, field.key))
      std::visit(
          [&](auto member) { tile.*member = static_cast<std::remove_reference_t<decltype(tile.*member)>>(*value); },
          field.member);
  return tile;
}

/// What is wrong with what text has for a tile: a clause that names the key behind `path`, what it is and what it may
/// be. "" where nothing is. `free`: the decisions that the text leaves; `whole`: the tile that it makes, all fields.
std::string wrongField(mlir::Attribute written, llvm::ArrayRef<Decision> free, mlir::DictionaryAttr whole,
                       const std::string &path);

/// What is decided of a tile: some of its fields.
template <typename Tile> class DecidedFields {
public:
  /// tile[&Tile::rows].
  template <typename T> std::optional<T> operator[](T Tile::*member) const {
    for (const auto &[known, value] : values)
      if (known == Member(member))
        return static_cast<T>(value);
    return std::nullopt;
  }
  template <typename T> void set(T Tile::*member, T value) { values.emplace_back(member, value); }

private:
  using Member = TileField<Tile>::Member;
  std::vector<std::pair<Member, int64_t>> values;
};

/// Collects the decisions of a tile, field by field: what is decided of one is known where the values of the next are
/// told. Of decided values that a domain lacks nothing follows.
template <typename Tile> class FreeTile {
public:
  /// `asked`: what is decided of the scope, may be null.
  FreeTile(llvm::StringRef scope, mlir::MLIRContext *context, mlir::DictionaryAttr asked)
      : scope(scope), context(context), asked(asked) {}

  /// A field's values and the one that is preferred; fewer than two are no choice.
  template <typename T> void add(T Tile::*member, Domain domain, T preferred) {
    const TileField<Tile> &field = *llvm::find_if(Tile::fields(), [&](const TileField<Tile> &one) {
      return one.member == typename TileField<Tile>::Member(member);
    });
    if (domain.count() < 2)
      return;
    if (mlir::Attribute value = asked ? asked.get(field.key) : nullptr; value && domain.contains(value))
      given.set(member, static_cast<T>(*numberIn(asked, field.key)));
    all.push_back(
        {field.key.str(), scope.str(), std::move(domain), tileValue(preferred, context), field.effect, field.help});
  }
  /// Numbers in ascending order, `preferred` with them.
  void add(int64_t Tile::*member, std::set<int64_t> values, int64_t preferred) {
    values.insert(preferred);
    add(member, numbersOf(values, context), preferred);
  }
  void add(bool Tile::*member, bool preferred) {
    add(member, Domain::oneOf({tileValue(false, context), tileValue(true, context)}), preferred);
  }

  /// What is decided of the fields so far.
  const DecidedFields<Tile> &decided() const { return given; }
  std::vector<Decision> take() { return std::move(all); }
  /// What text has for the tile, `asked`; fields that it lacks are those of `chosen`. Errors name the key behind
  /// `path`.
  Result<Tile> read(mlir::Attribute written, llvm::StringRef path, const Tile &chosen) {
    Tile tile = readTile(asked, chosen);
    std::string wrong = wrongField(written, take(), writeTile(tile, context), path.str());
    if (!wrong.empty())
      return modelError(wrong);
    return tile;
  }

private:
  llvm::StringRef scope;
  mlir::MLIRContext *context;
  mlir::DictionaryAttr asked;
  DecidedFields<Tile> given;
  std::vector<Decision> all;
};

} // namespace dmxc::kernels
