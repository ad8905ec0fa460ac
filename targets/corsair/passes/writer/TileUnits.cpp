//===- TileUnits.cpp - what sums become before they are stored ------------===//
#include "TileUnits.h"

#include <map>

using namespace mlir;
using namespace dmxc;

bool TileUnit::operator==(const TileUnit &other) const {
  auto function = [](lldmir::SimdOp op) { return std::pair(op.getFunctionAttr(), op.getParametersAttr()); };
  return inputs == other.inputs && function(op) == function(other.op);
}

template <typename List, typename Element> static int numberIn(List &list, const Element &element) {
  const auto known = llvm::find(list, element);
  const auto number = static_cast<int>(known - list.begin());
  if (known == list.end())
    list.push_back(element);
  return number;
}

int TileUnits::grid(Value memref) { return numberIn(grids, memref); }

int TileUnits::add(const TileUnit &unit, int guess) {
  return guess >= 0 && units[guess] == unit ? guess : numberIn(units, unit);
}

std::vector<TileUnit> TileUnits::epilogue(int last, SmallVectorImpl<Value> &beside) const {
  std::map<int, int> numbers; // of the units that it is made of, whose inputs have smaller numbers
  SmallVector<int> open{last};
  while (!open.empty())
    if (const int unit = open.pop_back_val(); unit >= 0 && numbers.try_emplace(unit, 0).second)
      llvm::append_range(open, units[unit].inputs);
  std::vector<TileUnit> made;
  for (auto &[unit, number] : numbers) {
    number = static_cast<int>(made.size());
    TileUnit next = units[unit];
    for (int &input : next.inputs)
      if (input != TileUnit::kSum)
        input = input >= 0 ? numbers[input] : TileUnit::kSum - 1 - numberIn(beside, grids[TileUnit::kSum - 1 - input]);
    made.push_back(std::move(next));
  }
  return made;
}
