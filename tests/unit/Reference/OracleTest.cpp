//===- OracleTest.cpp - the interpreter against numpy ---------------------===//
#include "Cases.h"

#include <array>
#include <cstdio>
#include <sstream>

namespace dmxc::reference::test {

namespace {

std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);)
    parts.push_back(part);
  return parts;
}

/// The command's standard output; `status` is its exit status.
std::string outputOf(const std::string &command, int &status) {
  std::string text;
  FILE *pipe = popen(command.c_str(), "r");
  if (!pipe) {
    status = -1;
    return text;
  }
  std::array<char, 65536> buffer;
  while (size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), count);
  status = pclose(pipe);
  return text;
}

} // namespace

TEST(ReferenceOracle, AgreesWithNumpy) {
  int status = 0;
  outputOf("/usr/bin/python3 -c 'import numpy' 2>/dev/null", status);
  if (status != 0)
    GTEST_SKIP() << "/usr/bin/python3 has no numpy: the cases it computes are not run";
  std::string text = outputOf("/usr/bin/python3 -B '" DMXC_ORACLE_SCRIPT "'", status);
  ASSERT_EQ(status, 0) << "the script that computes the cases failed";
  unsigned count = 0;
  for (const std::string &line : split(text, '\n')) {
    std::vector<std::string> fields = split(line, '\t');
    ASSERT_EQ(fields.size(), 5u) << line;
    runCase({fields[0], fields[1], split(fields[2], ';'), split(fields[3], ';'), "", std::stod(fields[4])});
    ++count;
    ASSERT_FALSE(HasFailure()) << line;
  }
  EXPECT_GT(count, 1000u);
  std::printf("%u cases\n", count);
}

} // namespace dmxc::reference::test
