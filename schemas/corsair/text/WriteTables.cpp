//===- WriteTables.cpp - prints ISA-tables.md -----------------------------===//

#include "../Isa.h"

#include <cstdio>

int main() {
  std::string text = dmx::corsair::isaTablesMarkdown();
  return std::fwrite(text.data(), 1, text.size(), stdout) == text.size() ? 0 : 1;
}
