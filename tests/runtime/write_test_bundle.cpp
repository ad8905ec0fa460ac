//===- write_test_bundle.cpp - writes the bundle consumer.c runs ----------===//
//
//   dmx-write-test-bundle OUT.bundle [TARGET]     TARGET: says that it is for this one
//
//===----------------------------------------------------------------------===//

#include "BundleBuilder.h"

int main(int argc, char **argv) {
  if (argc != 2 && argc != 3)
    return 2;
  dmxtest::TestBundle bundle = dmxtest::addModel(8);
  if (argc == 3) {
    bundle.manifest["targets"][0]["target"] = argv[2];
    bundle.graph["graphs"][0]["queues"][0]["target"] = argv[2];
  }
  dmxtest::writeFile(argv[1], bundle.zip());
  return 0;
}
