//===- UnsignedTest.cpp - a runtime without signatures --------------------===//

#include "SignatureTest.cpp"
