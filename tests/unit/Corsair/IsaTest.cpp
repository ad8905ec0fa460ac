//===- IsaTest.cpp - instructions as values, bytes and text ---------------===//

#include "schemas/corsair/text/Assembler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

using namespace dmx::corsair;

namespace {

using Random = std::mt19937_64;

int64_t pick(Random &random, int64_t min, int64_t max) {
  return std::uniform_int_distribution<int64_t>(min, max)(random);
}

/// Any value that the encoding of a field can hold and the text can name.
int64_t randomBase(Random &random, const FieldInfo &field) {
  switch (field.kind) {
  case FieldKind::Memory:
    return pick(random, 0, kMemories - 1);
  case FieldKind::Function:
    return pick(random, 0, kSimdFunctions - 1);
  case FieldKind::Rule:
  case FieldKind::Scope:
    return pick(random, 0, 3);
  case FieldKind::Signed:
  case FieldKind::Address:
  case FieldKind::Float:
    if (field.bits == 64)
      return static_cast<int64_t>(random());
    return pick(random, -(int64_t(1) << (field.bits - 1)), (int64_t(1) << (field.bits - 1)) - 1);
  default:
    return pick(random, 0, (int64_t(1) << field.bits) - 1);
  }
}

std::vector<Term> randomTerms(Random &random) {
  std::set<uint8_t> sources;
  for (int64_t count = pick(random, 0, 3); count > 0; --count) {
    uint8_t all[] = {static_cast<uint8_t>(pick(random, 0, 7)), static_cast<uint8_t>(16 + pick(random, 0, 15)),
                     kTermQuad};
    sources.insert(all[pick(random, 0, 2)]);
  }
  std::vector<Term> terms;
  for (uint8_t source : sources)
    terms.push_back({source, pick(random, 0, 3) ? pick(random, 1, 100000) : -static_cast<int64_t>(random() >> 1) - 1});
  return terms;
}

Instruction randomInstruction(Random &random, const InstructionInfo &info) {
  Instruction in(info.opcode);
  for (size_t i = 0; i < info.fields.size(); ++i) {
    const FieldInfo &field = info.fields[i];
    if (pick(random, 0, 2))
      in.set(field.name, randomBase(random, field), field.affine ? randomTerms(random) : std::vector<Term>());
  }
  if (auto unit = configUnit(info.opcode))
    for (const ConfigKeyInfo &key : configKeys())
      if (key.units >> static_cast<int>(*unit) & 1 && pick(random, 0, 3) == 0)
        in.key(key.key, pick(random, key.min, key.max));
  return in;
}

std::string readFile(const std::string &path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace

TEST(CorsairIsa, EncodingPrintingAndParsingAreFixedPoints) {
  Random random(1);
  for (const InstructionInfo &info : instructions())
    for (int i = 0; i < 200; ++i) {
      Instruction in = randomInstruction(random, info);
      std::vector<uint8_t> bytes;
      encode(in, bytes);
      std::string error;
      size_t offset = 0;
      auto decoded = decode(bytes, offset, error);
      ASSERT_TRUE(decoded) << info.name << ": " << error;
      EXPECT_EQ(offset, bytes.size());
      EXPECT_EQ(*decoded, in) << info.name;
      std::string text = print(*decoded);
      auto parsed = parseInstruction(text, error);
      ASSERT_TRUE(parsed) << text << ": " << error;
      EXPECT_EQ(*parsed, in) << text;
      EXPECT_EQ(print(*parsed), text);
    }
}

TEST(CorsairIsa, DecodingAcceptsOnlyWhatEncodingWrites) {
  Random random(2);
  size_t accepted = 0, tried = 0;
  for (int round = 0; round < 300; ++round)
    for (const InstructionInfo &info : instructions()) {
      std::vector<uint8_t> bytes;
      encode(randomInstruction(random, info), bytes);
      for (int64_t flips = pick(random, 0, 3); flips > 0; --flips)
        bytes[pick(random, 0, static_cast<int64_t>(bytes.size()) - 1)] ^= static_cast<uint8_t>(1 << pick(random, 0, 7));
      if (pick(random, 0, 9) == 0)
        bytes.resize(pick(random, 0, static_cast<int64_t>(bytes.size())));
      std::string error;
      size_t offset = 0;
      ++tried;
      if (auto decoded = decode(bytes, offset, error)) {
        ++accepted;
        std::vector<uint8_t> again;
        encode(*decoded, again);
        ASSERT_EQ(again, std::vector<uint8_t>(bytes.begin(), bytes.begin() + static_cast<long>(offset)));
      } else {
        EXPECT_FALSE(error.empty());
      }
    }
  EXPECT_GT(accepted, tried / 4);
  EXPECT_LT(accepted, tried);
}

TEST(CorsairIsa, TheMoveMatrixIsThatOfTheMachineDocument) {
  const std::set<std::string> legal = {"DDR2GM",  "DDR2ST", "GM2DDR",  "GM2GM",  "GM2ST",  "GM2IB",  "GM2OB",
                                       "GM2WB",   "GM2DRE", "GM2SIMD", "ST2DDR", "ST2GM",  "ST2IB",  "ST2WB",
                                       "ST2SIMD", "OB2GM",  "OB2ST",   "OB2IB",  "OB2DRE", "OB2SIMD"};
  size_t count = 0;
  for (int s = 0; s < kMemories; ++s)
    for (int d = 0; d < kMemories; ++d) {
      auto source = static_cast<Memory>(s), destination = static_cast<Memory>(d);
      std::string name = std::string(nameOf(source)) + "2" + std::string(nameOf(destination));
      EXPECT_EQ(isLegalMove(source, destination), legal.count(name) == 1) << name;
      count += isLegalMove(source, destination);
      std::string error;
      auto image = assemble(".stream s\n  MOVE_" + name + "\n  HALT\n", builtinMachine(), error);
      EXPECT_EQ(image.has_value(), legal.count(name) == 1) << name << ": " << error;
      if (!image) {
        EXPECT_NE(error.find("illegal move from " + std::string(nameOf(source))), std::string::npos) << error;
      }
    }
  EXPECT_EQ(count, legal.size());
}

TEST(CorsairIsa, TablesOfTheDocumentationAreCurrent) {
  EXPECT_EQ(readFile(std::string(DMX_CORSAIR_SCHEMAS) + "/ISA-tables.md"), isaTablesMarkdown())
      << "run dmx-isa-tables > schemas/corsair/ISA-tables.md";
}

TEST(CorsairIsa, TablesAreConsistent) {
  std::set<std::string> names;
  for (const InstructionInfo &info : instructions()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_EQ(findInstruction(static_cast<uint8_t>(info.opcode)), &info);
    std::set<std::string> fields;
    for (const FieldInfo &field : info.fields) {
      EXPECT_TRUE(fields.insert(field.name).second) << info.name << " " << field.name;
      EXPECT_TRUE(field.bits == 8 || field.bits == 16 || field.bits == 32 || field.bits == 64);
    }
  }
  int before = -1;
  for (const ConfigKeyInfo &key : configKeys()) {
    EXPECT_GT(static_cast<int>(key.key), before) << key.name;
    before = static_cast<int>(key.key);
    EXPECT_LE(key.min, key.byDefault) << key.name;
    EXPECT_LE(key.byDefault, key.max) << key.name;
  }
}

TEST(CorsairIsa, WrongLinesAreRefusedWithTheReason) {
  const std::pair<const char *, const char *> cases[] = {
      {"MOVE_DDR2WB", "illegal move from DDR to WB; from DDR legal destinations are: GM, ST"},
      {"FROBNICATE", "unknown mnemonic 'FROBNICATE'"},
      {"NOP speed=1", "NOP has no field 'speed'"},
      {"MATMUL imc=9 ppr=3", "imc is 9, with ppr 3 allowed are 1 to 8"},
      {"MATMUL imc=16 ppr=5", "ppr is 5, the machine has at most 4"},
      {"MATMUL imc=8 ppr=3 groups=3", "a slice has 16 cores"},
      {"MATMUL rows=65", "rows is 65"},
      {"MATMUL ib=0x0+L0*4", "names loop L0, but 0 loops enclose it"},
      {"MATMUL slot=16", "slot is 16"},
      {"MATMUL slices=0x10", "slices is 16"},
      {"EXEC_SIMD fn=magic", "field fn does not take 'magic'"},
      {"CONFIG_AC unit=3", "CONFIG_AC has no field 'unit'"},
      {"CONFIG_GM n0=-1", "key n0 is -1"},
      {"CONFIG_GM kind=f17", "key kind does not take 'f17'"},
      {"EXTRACT rule=scatter", "does not have this rule"},
      {"TRANSPOSE esize=3", "esize is 3"},
      {"SEND n=9", "a message has 1 to 8"},
      {"WAIT id=64", "field id is 64"},
      {"ENDLOOP", "no LOOP is open"},
      {"LOOP n=2", "1 LOOP without ENDLOOP"},
      {"CPU_RET", "CPU bytecode in a stream"},
      {"MOVE_GM2IB quads=0x1", "the destination is not GM"},
      {"EXEC_CPU fn=@none", "field fn does not take '@none'"},
      {"RESET units=\"x", "a text without end"},
  };
  for (auto [line, part] : cases) {
    std::string error;
    auto image = assemble(std::string(".stream s\n  ") + line + "\n  HALT\n", builtinMachine(), error);
    EXPECT_FALSE(image) << line;
    EXPECT_NE(error.find(part), std::string::npos) << line << ": " << error;
  }
}
