//===- ScheduleTest.cpp - what schedules cost on the machine --------------===//

#include "Device.h"

#include "schemas/corsair/text/Assembler.h"

using namespace dmxtest;

namespace {

constexpr double kMacsPerClock = 512; ///< of a core, BFP16

nlohmann::json reportOf(int64_t m, int64_t k, int64_t n, const StageOptions &options) {
  auto device =
      makeDevice(encodeText(lowerToDlir(productText(m, k, n, noise(1, static_cast<size_t>(k * n))), options)));
  if (!device)
    return {};
  device->set("arg0", noise(2, static_cast<size_t>(m * k)));
  return device->report();
}

/// Share of the products' time, from the first to the last, in which `cores` cores of a quad's slices compute.
double busyShare(const nlohmann::json &report, int cores) {
  const nlohmann::json &task = taskOf(report, "matmul");
  return task["macs"]["int8"].get<double>() / clocksOf(task) / report["quads"].get<double>() / 4 / cores /
         kMacsPerClock;
}

void print(const char *what, const nlohmann::json &report, double share) {
  const nlohmann::json &task = taskOf(report, "matmul");
  std::printf(
      "%-44s %8.0f clocks, bound %s; products %6.0f clocks, bound %s, arrays %.1f %%, %.1f %% of their cores' peak\n",
      what, report["clocks"].get<double>(), report["bound"].get<std::string>().c_str(), clocksOf(task),
      task["bound"].get<std::string>().c_str(), 100 * share, 100 * busyShare(report, 16));
}

} // namespace

TEST(CorsairSchedule, ResidentOperandsKeepTheArraysBusy) {
  // A column of tiles a quad: one group of 8 cores, four slices, two rounds of rows.
  nlohmann::json columns = reportOf(512, 512, 512, {"columns", 8, 0, true});
  print("512^3, 8 quads by columns, resident", columns, busyShare(columns, 8));
  EXPECT_GE(busyShare(columns, 8), 0.9);
  EXPECT_EQ(taskOf(columns, "matmul")["bound"], "compute");
  // Two columns a quad: both groups.
  nlohmann::json wrapped = reportOf(512, 512, 512, {"columns", 4, 0, true});
  print("512^3, 4 quads by columns, resident", wrapped, busyShare(wrapped, 16));
  EXPECT_GE(busyShare(wrapped, 16), 0.9);
  // A row of tiles a quad: both groups and all slices at once.
  nlohmann::json rows = reportOf(512, 512, 512, {"rows", 8, 0, true});
  print("512^3, 8 quads by rows, resident", rows, busyShare(rows, 16));
  EXPECT_GE(busyShare(rows, 16), 0.9);
  nlohmann::json longer = reportOf(4096, 512, 512, {"columns", 8, 0, true});
  print("4096x512x512, 8 quads by columns, resident", longer, busyShare(longer, 8));
  EXPECT_GE(busyShare(longer, 8), 0.9);
}

TEST(CorsairSchedule, FromDdrTheExampleIsBoundByDdr) {
  nlohmann::json report = reportOf(512, 512, 512, {});
  print("512^3, 8 quads, from and to DDR", report, busyShare(report, 8));
  EXPECT_EQ(report["bound"], "DDR");
  // All of A for each chiplet, once: quads load a share each and send it on. No weights: they came with init.
  EXPECT_EQ(report["read_bytes"]["DDR"], 2 * 266240);
  EXPECT_EQ(report["written_bytes"]["DDR"], 512 * 512 * 2);
  EXPECT_LT(report["clocks"].get<double>(), 1.1 * (266240 + 262144) / 43.7);
}

TEST(CorsairSchedule, OneRowIsBoundBySramAtAnEighthOfPeak) {
  nlohmann::json report = reportOf(1, 512, 16384, {"columns", 1, 0, true});
  double share = busyShare(report, 16);
  print("1x512x16384, 1 quad, resident", report, share);
  EXPECT_EQ(taskOf(report, "matmul")["bound"], "SRAM");
  EXPECT_NEAR(share, 1.0 / 8, 0.01);
}

TEST(CorsairSchedule, CodeDoesNotGrowWithTrips) {
  auto instructions = [](int64_t m) {
    Encoded encoded = encodeText(lowerToDlir(productText(m, 512, 512, noise(1, 512 * 512)), {"columns"}));
    std::string error;
    auto image = isa::assemble(encoded.assembly, isa::builtinMachine(), error);
    EXPECT_TRUE(image) << error;
    size_t count = 0;
    for (const isa::Code &code : image->streams)
      count += code.instructions.size();
    return count;
  };
  EXPECT_EQ(instructions(1024), instructions(8192));
}
