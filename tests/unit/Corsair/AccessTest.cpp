//===- AccessTest.cpp - predicted accesses against executed ones ----------===//
//
// Every access of the simulated card passes the shadow of a memory. The linker puts this
// test between the card and the shadow (--wrap), so that what random instructions really
// touch is compared with what accessesOf says of them.
//
//===----------------------------------------------------------------------===//

#include "schemas/corsair/verify/Access.h"
#include "runtime/devices/corsair/Card.h"
#include "schemas/corsair/text/Assembler.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

using namespace dmx::corsair;
using dmxrt::corsair::Actor;
using dmxrt::corsair::Problem;
using dmxrt::corsair::Shadow;
using dmxrt::corsair::Storage;

namespace {

struct Event {
  const Shadow *shadow;
  bool write;
  uint64_t begin, size;
  uint32_t thread, position;
};
std::vector<Event> events;
bool recording = false;

void record(const Shadow *shadow, bool write, uint64_t begin, uint64_t size, const Actor &actor) {
  if (recording && size)
    events.push_back({shadow, write, begin, size, actor.epoch.thread, actor.epoch.position});
}

} // namespace

// Shadow::read and Shadow::write as the linker names them.
#define SHADOW_PARAMETERS                                                                                              \
  Shadow *shadow, uint64_t begin, uint64_t size, dmxrt::sim::ByteKind kind, const Actor &actor, Problem &problem
#define SHADOW_READ _ZN5dmxrt3sim6Shadow4readEmmhRKNS0_5ActorERNS0_7ProblemE
#define SHADOW_WRITE _ZN5dmxrt3sim6Shadow5writeEmmhRKNS0_5ActorERNS0_7ProblemE
#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)
extern "C" {
bool NAME(__real_, SHADOW_READ)(SHADOW_PARAMETERS);
bool NAME(__real_, SHADOW_WRITE)(SHADOW_PARAMETERS);
bool NAME(__wrap_, SHADOW_READ)(SHADOW_PARAMETERS) {
  record(shadow, false, begin, size, actor);
  return NAME(__real_, SHADOW_READ)(shadow, begin, size, kind, actor, problem);
}
bool NAME(__wrap_, SHADOW_WRITE)(SHADOW_PARAMETERS) {
  record(shadow, true, begin, size, actor);
  return NAME(__real_, SHADOW_WRITE)(shadow, begin, size, kind, actor, problem);
}
}

namespace {

constexpr const char *kHeader = ".kernel k\n  .footprint DDR=0x1000000 GM=0x1000000 ST=0xc00000 OB=0x10000 WB=0x2100 "
                                "IB=0x12000 DRE=0x4000 SIMD=0x10000\n  .main\n    .launch quad=5 q0=s R1=3\n";

/// What one run touched: hulls by place and direction.
struct Executed {
  struct Place {
    uint32_t position;
    Memory memory;
    uint32_t unit;
    bool write;
    auto operator<=>(const Place &) const = default;
  };
  std::map<Place, ByteRange> hulls;
  bool finished = false;
  std::string fault;
};

/// Runs the program with every byte of these memories being of a kind already.
Executed execute(const Image &image, const std::map<Memory, ElemKind> &kinds) {
  Storage storage;
  EXPECT_TRUE(storage.reserve(image.machine, image.kernels[0].footprint.bytes));
  std::map<const Shadow *, std::pair<Memory, uint32_t>> places;
  Problem problem;
  for (int i = 0; i < kMemories; ++i) {
    auto memory = static_cast<Memory>(i);
    for (int unit = 0; unit < image.machine.unitCount(memory); ++unit)
      places[&storage.shadow(memory, static_cast<uint32_t>(unit))] = {memory, unit};
  }
  for (auto [memory, kind] : kinds) { // quad 5 lies in chiplet 1
    uint32_t scale = memory == Memory::WB ? 64 : memory == Memory::DDR || memory == Memory::GM ? 1 : 4;
    uint32_t first = memory == Memory::DDR ? 1 : 5 * scale;
    uint64_t bytes = std::min<uint64_t>(storage.size(memory), 1 << 20);
    for (uint32_t unit = first; unit < first + scale; ++unit)
      storage.shadow(memory, unit).write(0, bytes, dmxrt::corsair::byteKind(kind), Actor(), problem);
  }
  dmxrt::corsair::Card card(image.machine, storage);
  std::vector<dmxrt::corsair::Stream> streams = dmxrt::corsair::decodeStreams(image);
  events.clear();
  recording = true;
  dmxrt::corsair::RunResult result = card.run({&image, &streams, &image.kernels[0].main, {}}, {});
  recording = false;
  Executed out;
  out.finished = !result.fault;
  out.fault = result.fault ? result.fault->text : "";
  for (const Event &event : events) {
    auto place = places.find(event.shadow);
    if (place == places.end()) // registers
      continue;
    ByteRange range{static_cast<int64_t>(event.begin), static_cast<int64_t>(event.begin + event.size)};
    auto [it, fresh] = out.hulls.emplace(
        Executed::Place{event.position, place->second.first, place->second.second, event.write}, range);
    if (!fresh)
      it->second = {std::min(it->second.begin, range.begin), std::max(it->second.end, range.end)};
  }
  return out;
}

struct Outcome {
  int programs = 0, finished = 0;
  size_t places = 0, exact = 0;
};

/// Everything executed was predicted, and after a run without a fault nothing else was.
void compare(const std::string &text, const std::map<Memory, ElemKind> &kinds, Outcome &outcome) {
  std::string error;
  auto image = assemble(text + kHeader, builtinMachine(), error);
  ASSERT_TRUE(image) << error << "\n" << text;
  Executed done = execute(*image, kinds);
  std::vector<Access> accesses = accessesOf(*image, image->kernels[0], image->kernels[0].main.launches[0]);
  std::map<Executed::Place, ByteRange> predicted;
  std::set<Executed::Place> anywhere;
  for (const Access &access : accesses)
    for (uint32_t unit : access.units) {
      Executed::Place place{access.position, access.memory, unit, access.write};
      if (!access.range) {
        anywhere.insert(place);
        continue;
      }
      auto [it, fresh] = predicted.emplace(place, *access.range);
      if (!fresh)
        it->second = {std::min(it->second.begin, access.range->begin), std::max(it->second.end, access.range->end)};
    }
  ++outcome.programs;
  outcome.finished += done.finished;
  for (const auto &[place, range] : done.hulls) {
    if (anywhere.count(place))
      continue;
    auto it = predicted.find(place);
    if (it == predicted.end() && !place.write) // its own results, accumulated over steps
      it = predicted.find({place.position, place.memory, place.unit, true});
    std::string what = std::string(place.write ? "writes " : "reads ") + std::string(nameOf(place.memory)) +
                       " of unit " + std::to_string(place.unit) + " at " + std::to_string(place.position) + " in\n" +
                       text + done.fault;
    ASSERT_NE(it, predicted.end()) << what;
    EXPECT_TRUE(it->second.begin <= range.begin && range.end <= it->second.end)
        << what << "\npredicted " << it->second.begin << ".." << it->second.end << ", touched " << range.begin << ".."
        << range.end;
    ++outcome.places;
    outcome.exact += it->second == range;
  }
  // Windows may lie in the padding; which slices share few items depends on the trip.
  bool varies = text.find("+L0 ") != text.npos || text.find("+L0\n") != text.npos;
  if (!done.finished || varies || text.find("win_h") != text.npos)
    return;
  for (const auto &[place, range] : predicted)
    EXPECT_TRUE(done.hulls.count(place)) << "predicted only: " << nameOf(place.memory) << " at " << place.position
                                         << " in\n"
                                         << text;
}

/// Random instructions of one kind with sensible descriptors.
class Maker {
public:
  explicit Maker(uint64_t seed) : random(seed) {}
  std::string move();
  std::string product(bool conv);
  std::string simd();
  std::string reshape();
  std::string transpose();
  std::map<Memory, ElemKind> kinds;

private:
  std::mt19937_64 random;
  int64_t pick(int64_t min, int64_t max) { return std::uniform_int_distribution<int64_t>(min, max)(random); }
  template <typename T> T one(std::initializer_list<T> list) {
    return *(list.begin() + pick(0, static_cast<int64_t>(list.size()) - 1));
  }
  static std::string str(int64_t value) { return std::to_string(value); }
  static std::string set(const char *name, int64_t value) { return std::string(" ") + name + "=" + str(value); }
  /// An address with terms of the enclosing loop, a register and the quad.
  std::string address(const char *name, int64_t step = 64) {
    std::string text = set(name, step * pick(0, 40));
    if (pick(0, 2) == 0)
      text += "+L0*" + str(step * pick(1, 6));
    if (pick(0, 3) == 0)
      text += "+R1*" + str(step * pick(1, 4));
    if (pick(0, 3) == 0)
      text += "+Q*" + str(step);
    return text;
  }
  std::string window(bool channels);
  std::string trips() { return pick(0, 2) ? "" : " n=" + str(pick(0, 3)) + "+L0"; }
  std::string inLoop(const std::string &config, const std::string &body) {
    return ".stream s\n  " + config + "\n  LOOP n=" + str(pick(1, 3)) + "\n    " + body + "\n  ENDLOOP\n  HALT\n";
  }
};

std::string Maker::window(bool channels) {
  int64_t h = pick(1, 9), w = pick(1, 9), kh = pick(1, 3), kw = pick(1, 3);
  std::string text = set("win_h", h) + set("win_w", w) + set("win_kh", kh) + set("win_kw", kw) +
                     set("win_sh", pick(1, 2)) + set("win_sw", pick(1, 2)) + set("win_ph", pick(0, 2)) +
                     set("win_pw", pick(0, 2)) + set("win_dh", pick(1, 2)) + set("win_dw", pick(1, 2)) +
                     set("win_ow", pick(1, 6));
  return text + (channels ? set("win_c", pick(1, 20)) : "");
}

std::string Maker::move() {
  using M = Memory;
  M from = one({M::DDR, M::GM, M::GM, M::GM, M::ST, M::OB}), to = M::GM;
  do
    to = static_cast<M>(pick(0, kMemories - 1));
  while (!isLegalMove(from, to));
  bool converts = mayConvert(from, to);
  struct Form {
    const char *kind, *to;
    bool source, destination;
  };
  Form form =
      converts ? one<Form>({{"f16", "f16", false, false},
                            {"f32", "f16", false, false},
                            {"f16", "bfp16r", false, true},
                            {"f32", "bfp12r", false, true},
                            {"bfp16r", "f16", true, false},
                            {"bfp24c", "f32", true, false},
                            {"bfp16r", "bfp24r", true, true},
                            {"bfp16r", "bfp16r", true, true}})
               : one<Form>({{"f16", "f16", false, false}, {"i64", "i64", false, false}, {"raw", "raw", false, false}});
  kinds = {{from, form.kind == std::string("raw") ? ElemKind::F16 : *elemKindFromName(form.kind)}};
  bool stash = from == M::ST || to == M::ST, rows = form.source || form.destination,
       raw = form.kind == std::string("raw");
  std::string config = std::string(stash ? "CONFIG_ST" : "CONFIG_GM") + " kind=" + form.kind;
  config += form.to == std::string(form.kind) ? "" : std::string(" to=") + form.to;
  config += set("smode", form.source) + set("dmode", form.destination) + set("unit", pick(1, 70));
  int64_t n3 = pick(1, 3);
  config += set("n0", pick(1, 4)) + set("n1", pick(1, 3)) + set("n2", pick(1, 2)) + set("n3", n3);
  for (bool destination : {false, true}) {
    bool tiled = destination ? form.destination : form.source;
    for (int i = 0; i < 3; ++i)
      config += set((std::string(destination ? "t" : "s") + str(i)).c_str(), tiled        ? pick(0, 50)
                                                                             : pick(0, 5) ? 64 * pick(0, 30)
                                                                                          : -64);
    config += set(destination ? "t3" : "s3", (tiled ? 8320 : 64) * pick(1, 4));
    if (tiled)
      config += set(destination ? "dband" : "sband", 64 * pick(130, 600));
  }
  config += set("sslice", 64 * pick(0, 30)) + set("dslice", 64 * pick(0, 30)) + set("score", 64 * pick(0, 3));
  if (!raw && pick(0, 1))
    config += set("lo0", pick(0, 1)) + set("hi0", pick(1, 4)) + set("hi3", pick(1, 3)) + set("lo1", pick(0, 1));
  if (!raw && pick(0, 1))
    config += set("tail", pick(1, 80));
  if (rows && pick(0, 1))
    config += set("estride", 8 * pick(1, 20));
  std::string body =
      "MOVE_" + std::string(nameOf(from)) + "2" + std::string(nameOf(to)) + address("saddr") + address("daddr");
  body += form.source ? set("srow", pick(0, 90)) : "";
  body += form.destination ? set("drow", pick(0, 90)) + "+L0*" + str(pick(1, 40)) : "";
  body += trips() + set("slices", pick(1, 15));
  body += to == M::WB ? set("cores", pick(1, 0xffff)) : "";
  body += to == M::GM && (from == M::GM || from == M::DDR) && pick(0, 1) ? set("quads", 16 * pick(1, 15)) : "";
  return inLoop(config, body);
}

std::string Maker::product(bool conv) {
  struct Operands {
    const char *acts, *weights;
  };
  Operands kind =
      one<Operands>({{"bfp16r", "bfp16c"}, {"bfp12r", "bfp12c"}, {"bfp24r", "bfp24c"}, {"bfp16r", "bfp12x64c"}});
  bool inGm = pick(0, 1);
  kinds = {{Memory::IB, *elemKindFromName(kind.acts)},
           {Memory::GM, *elemKindFromName(kind.acts)},
           {Memory::WB, *elemKindFromName(kind.weights)},
           {Memory::ST, *elemKindFromName(kind.weights)},
           {Memory::OB, ElemKind::Bfp32}};
  int64_t imc = pick(1, 4);
  std::string config =
      std::string("CONFIG_AC kind=") + kind.acts + " wkind=" + kind.weights + set("ib_chunk", 64 * pick(1, 150)) +
      set("ib_step", 64 * pick(0, 150)) + set("ob_row", 4 * pick(16, 70)) + set("ob_group", 256 * pick(0, 8)) +
      set("ob_step", 256 * pick(0, 8)) + set("st_chunk", 64 * pick(1, 150)) + set("st_group", 64 * pick(0, 300)) +
      set("st_step", 64 * pick(0, 300)) + set("step_acc", pick(0, 1));
  std::string body = (conv ? "CONV" : "MATMUL") + set("slices", pick(1, 15)) + set("core", pick(0, 2)) +
                     set("imc", imc) + set("ppr", 2) + set("groups", pick(1, 3)) + address("ob", 4) + address("st") +
                     set("acc", pick(0, 1)) + set("steps", pick(1, 3)) + set("stream", pick(0, 1));
  if (!conv) {
    int64_t row = pick(0, 3) ? 0 : pick(1, 30);
    config += pick(0, 1) ? set("k_chunks", pick(1, 7)) : "";
    return inLoop(config,
                  body + address("ib") + set("row", row) + set("rows", pick(1, 64 - row)) + set("k0", pick(0, 2)));
  }
  int64_t blocks = pick(1, 2);
  std::string shape = window(false);
  config += shape + set("img_blocks", blocks) + set("img_band", 64 * pick(1, 200)) +
            set("img_chunk", 64 * pick(1, 200)) + (inGm ? "" : " img_mem=IB") + set("k_chunks", pick(1, 2)) +
            set("pix_slice", pick(0, 20)) + set("pixels", pick(1, 30));
  return inLoop(config,
                body + address("img") + set("irow", pick(0, 70)) + set("pix", pick(0, 9)) + set("rows", pick(1, 20)));
}

std::string Maker::simd() {
  using F = SimdFunction;
  auto function = static_cast<F>(pick(0, kSimdFunctions - 1));
  bool windows = function >= F::PoolMax, boolean = function >= F::Eq && function <= F::Ge;
  Memory place[4];
  for (Memory &memory : place)
    memory = one({Memory::GM, Memory::GM, Memory::SIMD});
  kinds = {{Memory::GM, ElemKind::F32}, {Memory::SIMD, ElemKind::F32}};
  std::string config = std::string("CONFIG_SIMD ak=f32 bk=f32") + (pick(0, 3) ? " ck=f32" : " ck=raw");
  config += boolean || function == F::IsNaN ? " dk=bool" : " dk=f32";
  int64_t n[4] = {pick(1, 3), pick(1, 5), pick(1, 5), 2 * pick(1, 12)};
  int64_t inner = pick(1, 2), split = pick(0, windows ? 4 : 4 - inner);
  config += windows ? window(false) : "";
  for (int i = 0; i < 4; ++i)
    config += set(("n" + str(i)).c_str(), n[i]);
  const char *names[] = {"d", "a", "b", "c"};
  for (int operand = 0; operand < 4; ++operand) {
    config += std::string(" ") + names[operand] + "m=" + std::string(nameOf(place[operand]));
    for (int i = 0; i < 4; ++i)
      config += set((names[operand] + str(i)).c_str(), 4 * pick(0, 60));
  }
  config += set("inner", inner) + set("split", split);
  std::string body = "EXEC_SIMD fn=" + std::string(nameOf(function)) + set("slices", pick(1, 15));
  for (const char *name : names)
    body += address(name);
  body += trips() + (windows ? set("index", pick(0, 2)) : "");
  return inLoop(config, body);
}

std::string Maker::reshape() {
  const char *rule = one({"strided", "gather", "scatter", "window"});
  bool insert = rule == std::string("scatter") || (rule == std::string("strided") && pick(0, 1));
  Memory from = one({Memory::DDR, Memory::GM, Memory::DRE}), to = one({Memory::GM, Memory::GM, Memory::DDR});
  // Indices are zeros: the hull of a gather is larger.
  bool indexed = rule == std::string("gather") || rule == std::string("scatter");
  const char *kind = indexed ? "i32" : "f16";
  kinds = {{from, *elemKindFromName(kind)}, {Memory::GM, *elemKindFromName(kind)}};
  std::string config = std::string("CONFIG_GM kind=") + kind + set("unit", pick(1, 40)) + window(true);
  for (int i = 0; i < 4; ++i)
    config += set(("n" + str(i)).c_str(), pick(1, 3)) + set(("s" + str(i)).c_str(), 8 * pick(pick(0, 4) ? 0 : -3, 40)) +
              set(("t" + str(i)).c_str(), 8 * pick(0, 40));
  config += indexed ? set("irange", pick(1, 9)) + set("ipitch", 4 * pick(1, 3)) : "";
  std::string body = std::string(insert ? "INSERT" : "EXTRACT") + " rule=" + rule + set("slice", pick(0, 3)) +
                     " src=" + std::string(nameOf(from)) + " dst=" + std::string(nameOf(to)) + address("saddr") +
                     address("daddr") + (indexed ? address("iaddr") : "") +
                     (rule == std::string("window") ? set("pix", pick(0, 9)) : "");
  return inLoop(config, body + trips());
}

std::string Maker::transpose() {
  Memory from = one({Memory::GM, Memory::DRE});
  kinds = {{from, ElemKind::F16}};
  std::string body = "TRANSPOSE src=" + std::string(nameOf(from)) + set("slice", pick(0, 3)) + address("saddr") +
                     address("daddr") + set("rows", pick(1, 20)) + "+L0" + set("cols", pick(1, 20)) +
                     set("esize", one<int64_t>({1, 2, 4, 8})) + set("spitch", 8 * pick(0, 30)) +
                     set("dpitch", 8 * pick(0, 30)) + set("batch", pick(1, 3)) + set("sbatch", 64 * pick(0, 20)) +
                     set("dbatch", 64 * pick(-1, 20));
  return inLoop("CONFIG_GM", body);
}

template <typename Make> void check(Make make, int programs, double finished, double exact) {
  Outcome outcome;
  for (int seed = 1; seed <= programs; ++seed) {
    SCOPED_TRACE(seed);
    Maker maker(static_cast<uint64_t>(seed));
    std::string text = make(maker);
    compare(text, maker.kinds, outcome);
    if (testing::Test::HasFailure())
      return;
  }
  std::printf("%d programs, %d finished, %zu of %zu hulls exact\n", outcome.programs, outcome.finished, outcome.exact,
              outcome.places);
  EXPECT_GE(outcome.finished, finished * outcome.programs);
  EXPECT_GE(static_cast<double>(outcome.exact), exact * static_cast<double>(outcome.places));
}

} // namespace

TEST(CorsairAccess, Moves) {
  check([](Maker &maker) { return maker.move(); }, 1500, 0.5, 0.7);
}
TEST(CorsairAccess, Products) {
  check([](Maker &maker) { return maker.product(false); }, 400, 0.3, 0.9);
}
TEST(CorsairAccess, Convolutions) {
  check([](Maker &maker) { return maker.product(true); }, 400, 0.3, 0.5);
}
TEST(CorsairAccess, SimdFunctions) {
  check([](Maker &maker) { return maker.simd(); }, 1000, 0.3, 0.9);
}
TEST(CorsairAccess, Reshapes) {
  check([](Maker &maker) { return maker.reshape(); }, 800, 0.5, 0.5);
}
TEST(CorsairAccess, Transposes) {
  check([](Maker &maker) { return maker.transpose(); }, 300, 0.5, 0.9);
}
