//===- write_device_bundle.cpp - assembly in, a bundle out ----------------===//
//
//   dmx-write-device-bundle ASSEMBLY OUT.bundle
//
//===----------------------------------------------------------------------===//

#include "DeviceBundle.h"
#include "TestDir.h"

int main(int argc, char **argv) {
  using namespace dmxc::tools::test;
  if (argc != 3)
    return 2;
  writeFile(argv[2], deviceBundle(readFile(argv[1])));
  return 0;
}
