//===- write_test_bundle.cpp - writes the bundle consumer.c runs ----------===//

#include "BundleBuilder.h"

int main(int argc, char **argv) {
  if (argc != 2)
    return 2;
  dmxtest::writeFile(argv[1], dmxtest::addModel(8).zip());
  return 0;
}
