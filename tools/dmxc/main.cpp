//===- main.cpp - dmxc, the compiler --------------------------------------===//
#include "dmxc/Driver/Driver.h"

int main(int argc, char **argv) { return dmxc::driver::dmxcMain(argc, argv); }
