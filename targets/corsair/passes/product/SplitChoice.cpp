//===- SplitChoice.cpp - which loop of a product is split over quads ------===//
#include "Split.h"

#include <algorithm>

using namespace dmxc;
using dmx::corsair::Machine;

double dmxc::splitClocks(const Machine &machine, const ProductTiles &product, Split split, int64_t quads) {
  int64_t trips = split == Split::Rows ? product.rows : product.columns;
  int64_t used = std::min(trips, quads), perChiplet = std::min<int64_t>(used, machine.quadsPerChiplet());
  int64_t turns = (trips + used - 1) / used;
  // What one chiplet reads and writes.
  double share = double(std::min(turns * perChiplet, trips));
  double activationTiles = double(product.k) * (split == Split::Rows ? share : double(product.rows));
  double weightTiles = double(product.k) * (split == Split::Rows ? double(product.columns * perChiplet) : share);
  double resultTiles = share * double(split == Split::Rows ? product.columns : product.rows);
  const dmx::corsair::MemoryInfo &ddr = machine.memory(dmx::corsair::Memory::DDR);
  double ddrClocks = (activationTiles + weightTiles) * double(product.operandBytes) / ddr.read +
                     resultTiles * double(product.resultBytes) / ddr.write;
  // A quad's cores work on as many tiles along k, and on as many results, as they are.
  double results = double(turns * (split == Split::Rows ? product.columns : product.rows));
  double cores = double(machine.slicesPerQuad() * machine.coresPerSlice());
  double arrayClocks = results * double(product.k) / cores * 64 * machine.rowClocks8;
  return std::max(ddrClocks, arrayClocks);
}

Split dmxc::cheaperSplit(const Machine &machine, const ProductTiles &product, int64_t quads) {
  return splitClocks(machine, product, Split::Rows, quads) < splitClocks(machine, product, Split::Columns, quads)
             ? Split::Rows
             : Split::Columns;
}
