//===- DlirWriter.cpp - building programs of the quads' queues ------------===//
#include "DlirWriter.h"

using namespace mlir;
using namespace dmxc;

Value DlirWriter::descriptor(const DmaSpec &spec) {
  NamedAttrList further;
  if (spec.toRows)
    further.set("target_rows", builder.getUnitAttr());
  for (auto [name, value] : {std::pair<StringRef, int64_t>("tail", spec.tail),
                             {"target_band", spec.targetBand},
                             {"element_stride", spec.elementStride},
                             {"index_pitch", spec.indexPitch},
                             {"index_range", spec.indexRange}})
    if (value)
      further.set(name, builder.getI64IntegerAttr(value));
  if (!spec.indexKind.empty())
    further.set("index_kind", builder.getStringAttr(spec.indexKind));
  DescriptorSpec walk = spec;
  walk.keepsDims = spec.toRows || !spec.indexKind.empty();
  return ProgramWriter::descriptor(walk, further);
}
