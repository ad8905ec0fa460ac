//===- main.cpp - dmxc, the compiler --------------------------------------===//
#include "dmxc/Driver/Driver.h"

#ifdef DMXC_WITH_COMPARE // CMakeLists.txt
#include <string_view>

int dmxCompareMain(int argc, char **argv);
#endif

int main(int argc, char **argv) {
#ifdef DMXC_WITH_COMPARE
  std::string_view name = argc > 0 ? argv[0] : "";
  if (name.substr(name.rfind('/') + 1) == "dmx-compare")
    return dmxCompareMain(argc, argv);
#endif
  return dmxc::driver::dmxcMain(argc, argv);
}
