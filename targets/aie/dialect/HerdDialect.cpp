//===- HerdDialect.cpp - a product on cores, before it has tiles ----------===//
#include "targets/aie/dialect/Herd.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::herd;

namespace dmxc::herd {
using aie::BDDimLayoutArrayAttr; // as the generated accessors call it
}

#include "targets/aie/dialect/HerdDialect.cpp.inc"
#define GET_OP_CLASSES
#include "targets/aie/dialect/HerdOps.cpp.inc"

void HerdDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "targets/aie/dialect/HerdOps.cpp.inc"
      >();
}

ParseResult SequenceOp::parse(OpAsmParser &parser, OperationState &result) {
  return aie::parseSequence(parser, result);
}
void SequenceOp::print(OpAsmPrinter &p) { aie::printSequence(*this, p); }
