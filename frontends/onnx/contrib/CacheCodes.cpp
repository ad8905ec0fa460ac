//===- CacheCodes.cpp - caches of 8 and 4 bit codes -----------------------===//
//
// Codes of 8 bits are signed bytes. Of 4 bits two lie in an unsigned byte, the first in its low half, each with 8
// added.
//
//===----------------------------------------------------------------------===//
#include "CacheCodes.h"

#include "frontends/common/ops/Formulas.h"

using namespace dmxc::dmir;

namespace dmxc::onnxfe {

CacheCodes::CacheCodes(NodeContext &c, const char *quantization, int past, int scaleOperand, int64_t heads, Dim size)
    : e(c.e), size(size) {
  std::string kind = c.attrString(quantization, "NONE");
  c.requireAttr(kind == "NONE" || kind == "PER_TENSOR" || kind == "PER_CHANNEL",
                std::string(quantization) + " '" + kind + "' is unknown");
  if (kind == "NONE") {
    c.requireShape(!c.has(past) || c.operand(past).dtype() == c.operand(0).dtype(),
                   "the cache has another type than the query, and " + std::string(quantization) + " is NONE");
    return;
  }
  bits = c.attrInt("kv_cache_bit_width", 8);
  c.requireAttr(bits == 8 || bits == 4, "kv_cache_bit_width must be 8 or 4, not " + std::to_string(bits));
  c.requireShape(c.has(past) && c.has(scaleOperand), "a quantised cache needs a past and a scale");
  DType type = bits == 8 ? DType::I8 : DType::U8;
  if (c.operand(past).dtype() != type)
    fail("op-unsupported",
         "a quantised cache of " + std::string(dtypeName(c.operand(past).dtype())) + " with " + std::to_string(bits) +
             " bits is not supported",
         {"export the model with a cache in its float type, or of 8 bits as i8 or 4 bits as u8"});
  c.requireShape(bits == 8 || size.valueOr(0) % 2 == 0, "heads of " + size.str() + " numbers do not pack by two");
  scale = e.cast(c.operand(scaleOperand), DType::F32);
  Dims each{1, heads, 1, size};
  bool one = kind == "PER_TENSOR" || scale.elements().is(1);
  c.requireShape(one ? mayEqual(scale.elements(), 1) : mayEqual(scale.dims(), each),
                 "the scale " + scale.describe() + " of the cache must be one number, or " + dimsString(each) +
                     " with PER_CHANNEL");
  scale = one ? e.reshape(scale, {}) : e.expectDims(scale, each);
}

Val CacheCodes::encoded(const Val &x) const {
  if (!bits)
    return x;
  Val code = e.emit<RoundOp>({e.div(e.cast(x, DType::F32), scale)});
  auto within = [&](double low, double high) {
    return e.min(e.max(code, e.scalar(DType::F32, low)), e.scalar(DType::F32, high));
  };
  if (bits == 8)
    return e.cast(within(-128, 127), DType::I8);
  code = e.cast(e.add(within(-8, 7), 8.0), DType::I32);
  Val low = e.sliceAxis(code, 3, 0, width(), 2), high = e.sliceAxis(code, 3, 1, width(), 2);
  return e.cast(e.add(low, e.mul(high, e.intScalar(DType::I32, 16))), DType::U8);
}

Val CacheCodes::decoded(const Val &cache) const {
  if (!bits)
    return cache;
  Val code = e.cast(cache, DType::I32);
  if (bits == 4) {
    Val base = e.intScalar(DType::I32, 16), high = e.div(code, base), low = e.sub(code, e.mul(high, base));
    Dims dims = cache.dims();
    dims.back() = size;
    code = e.reshape(e.concat({unsqueeze(e, low, 4), unsqueeze(e, high, 4)}, 4), dims);
    code = e.sub(code, e.intScalar(DType::I32, 8));
  }
  return e.mul(e.cast(code, DType::F32), scale);
}

} // namespace dmxc::onnxfe
