//===- FormatTable.cpp - which node computes in which formats -------------===//
#include "FormatTable.h"

#include "dmxc/Dialect/DMIR/BlockFp.h"

#include "llvm/Support/Format.h"

using namespace mlir;
using namespace dmxc;

static std::string formatOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  Type element = tensor ? tensor.getElementType() : type;
  if (auto block = dyn_cast<dmir::BlockFpType>(element))
    return block.getName();
  std::string text;
  llvm::raw_string_ostream(text) << element;
  return text;
}

static std::string formatsOf(TypeRange types) {
  std::string text;
  for (Type type : types)
    text += (text.empty() ? "" : " ") + formatOf(type);
  return text;
}

void dmxc::printFormats(func::FuncOp function, llvm::raw_ostream &os) {
  struct Row {
    std::string node, op, operands, results;
  };
  std::vector<Row> rows{{"node", "op", "operands", "results"}};
  function.walk([&](Operation *op) {
    if (op->getName().getDialectNamespace() == "dmir" && op->getNumOperands() && op->getNumResults())
      rows.push_back({dmir::nodeName(op), op->getName().stripDialect().str(), formatsOf(op->getOperandTypes()),
                      formatsOf(op->getResultTypes())});
  });
  size_t node = 0, name = 0, operands = 0;
  for (const Row &row : rows) {
    node = std::max(node, row.node.size());
    name = std::max(name, row.op.size());
    operands = std::max(operands, row.operands.size());
  }
  os << "formats of @" << function.getName() << ":\n";
  for (const Row &row : rows)
    os << "  " << llvm::left_justify(row.node, node) << "  " << llvm::left_justify(row.op, name) << "  "
       << llvm::left_justify(row.operands, operands) << "  " << row.results << "\n";
}
