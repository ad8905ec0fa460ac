//===- UserTasks.cpp - tasks of a user's assembly -------------------------===//
#include "UserTasks.h"
#include "targets/corsair/dialect/Corsair/Corsair.h"

#include "schemas/corsair/text/Text.h"
#include "schemas/corsair/verify/AccessRules.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;
using namespace dmxc;
using namespace dmxc::corsair;
using hw::ConfigKey, hw::Opcode;

static ConfigKey shifted(ConfigKey first, size_t by) { return static_cast<ConfigKey>(static_cast<size_t>(first) + by); }
static StringRef kindName(const UserLine &line, ConfigKey key) {
  return hw::nameOf(static_cast<hw::ElemKind>(line.key(key)));
}
/// The values of keys that follow each other.
static SmallVector<int64_t> listOf(const UserLine &line, ConfigKey first, size_t count = 4) {
  SmallVector<int64_t> values;
  for (size_t i = 0; i < count; ++i)
    values.push_back(line.key(shifted(first, i)));
  return values;
}

Status UserWriter::run(ArrayRef<DeviceTensor> operands, const DeviceTensor &result) {
  for (auto [declared, tensor] : llvm::zip(text.operands, operands)) {
    places[declared.name] = tensor.address;
    bytes[declared.name] = tensor.elements() * tensor.elementSize();
  }
  places[text.results.front().name] = result.address;
  bytes[text.results.front().name] = result.elements() * result.elementSize();
  for (const UserBuffer &buffer : text.buffers) {
    places[buffer.name] = {to.buffers.add(buffer.memory, buffer.name, buffer.bytes), 0, {}};
    bytes[buffer.name] = buffer.bytes;
  }
  for (const std::vector<UserLine> &lines : text.queues)
    if (Status inside = checkIndexed(lines); !inside)
      return inside;
  // What tasks before and behind do in the slices' memories their own tokens order among themselves alone.
  const bool meets = text.usesUnits();
  if (meets)
    to.main->meet("quad");
  to.main->task(to.node);
  for (int queue = 0; queue < kQueues; ++queue)
    if (Status written = write(queue, text.queues[queue]); !written)
      return written;
  to.writer.loc = node;
  if (meets)
    to.main->meet("quad");
  return Status::ok();
}

Status UserWriter::write(int queue, ArrayRef<UserLine> lines) {
  Status status = Status::ok();
  for (size_t i = 0; i < lines.size() && status; ++i) {
    const UserLine &line = lines[i];
    to.writer.loc = userLocation(node, text.name.file, line.number);
    if (line.instruction.opcode == Opcode::Loop) {
      const size_t end = endOfLoop(lines, i);
      const Address trips = valueOf(line, "n");
      if (!trips.terms.empty() || trips.offset > 0)
        to.main->repeat(trips, [&](int) { status = write(queue, lines.slice(i + 1, end - i - 1)); });
      i = end;
    } else if (line.instruction.opcode == Opcode::Signal || line.instruction.opcode == Opcode::Wait) {
      tokens(queue, line);
    } else {
      task(queue, line);
      status = check(line);
    }
  }
  return status;
}

Status UserWriter::check(const UserLine &line) {
  Operation *made = &to.builder.getInsertionBlock()->back();
  std::string why;
  ScopedDiagnosticHandler handler(made->getContext(), [&](Diagnostic &diagnostic) {
    why = why.empty() ? diagnostic.str() : why;
    return success();
  });
  SmallVector<Operation *> all{made};
  for (Value operand : made->getOperands())
    if (auto how = operand.getDefiningOp<dlir::DescriptorOp>())
      all.push_back(how);
  if (llvm::all_of(all, [](Operation *op) { return succeeded(verify(op)); }))
    return Status::ok();
  return text.name.refusal(line.number, std::string(line.instruction.info().name) + ": " + why);
}

int UserWriter::token(int64_t number) {
  const std::string key = text.name.file + "\n" + text.name.symbol + "\n" + std::to_string(number);
  auto [known, isNew] = to.userTokens.try_emplace(key, kFirstUserToken + static_cast<int>(to.userTokens.size()));
  if (auto credits = text.credits.find(number); isNew && credits != text.credits.end())
    to.main->give(known->second, credits->second);
  return known->second;
}

void UserWriter::tokens(int queue, const UserLine &line) {
  const int number = token(line.instruction.get("id"));
  const int64_t count = line.instruction.get("n");
  QueueWriter writer = to.main->on(static_cast<Queue>(queue));
  if (line.instruction.opcode == Opcode::Signal)
    writer.signal(number, count);
  else
    writer.wait(number, count);
}

void UserWriter::task(int number, const UserLine &line) {
  const QueueWriter queue = to.main->on(static_cast<Queue>(number));
  switch (line.instruction.opcode) {
  case Opcode::ExecSimd:
    return simd(queue, line);
  case Opcode::Move:
    return move(queue, line);
  case Opcode::Extract:
  case Opcode::Insert:
    return reshape(queue, line);
  case Opcode::Transpose:
    return transpose(queue, line);
  case Opcode::Matmul:
    return product(queue, line);
  default: { // NOP
    TaskWriter nop = queue.task("corsair.nop");
    nop.integer("clocks", line.instruction.get("n"));
    nop.create();
  }
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

Address UserWriter::valueOf(const UserLine &line, StringRef field) {
  const hw::Operand &operand = line.instruction.operands[line.instruction.info().field(std::string_view(field))];
  Address value{-1, operand.base, {}};
  for (const hw::Term &term : operand.terms)
    value = value.plus(term);
  return value;
}

Address UserWriter::placeOf(const UserLine &line, StringRef field) {
  const Address offset = valueOf(line, field);
  auto named = line.buffers.find(field.str());
  Address place =
      named != line.buffers.end() ? places.at(named->second) : Address{to.buffers.unit(*memoryOf(line, field)), 0, {}};
  place = place.plus(offset.offset);
  for (const hw::Term &term : offset.terms)
    place = place.plus(term);
  return place;
}

void UserWriter::clause(const QueueWriter &queue, TaskWriter &task, StringRef name, const UserLine &line,
                        StringRef field) {
  const Address value = valueOf(line, field);
  const hw::InstructionInfo &info = line.instruction.info();
  if (!value.terms.empty() || value.offset != info.fields[info.field(std::string_view(field))].byDefault)
    queue.sum(task, name, value);
}

static DictionaryAttr windowClauseOf(Builder &builder, const UserLine &line) {
  NamedAttrList list;
  for (auto [key, value] : line.config.config)
    if (const hw::ConfigKeyInfo *info = hw::findConfigKey(key); StringRef(info->name).starts_with("win_"))
      list.set(StringRef(info->name).drop_front(4), builder.getI64IntegerAttr(value));
  return list.empty() ? DictionaryAttr() : list.getDictionary(builder.getContext());
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

void UserWriter::simd(const QueueWriter &queue, const UserLine &line) {
  static constexpr const char *fields[] = {"d", "a", "b", "c"};
  static constexpr const char *names[][2] = {
      {"to_kind", "to_strides"}, {"a_kind", "a_strides"}, {"b_kind", "b_strides"}, {"c_kind", "c_strides"}};
  static constexpr ConfigKey steps[] = {ConfigKey::D0, ConfigKey::A0, ConfigKey::B0, ConfigKey::C0};
  const hw::Instruction &in = line.instruction;
  Builder &builder = queue.builder();
  TaskWriter task = queue.task("corsair.simd");
  task.text("function", hw::nameOf(static_cast<hw::SimdFunction>(in.get("fn"))))
      .array("dims", listOf(line, ConfigKey::N0));
  for (size_t i = 0; i < 4 && memoryOf(line, fields[i]); ++i) {
    i == 0 ? queue.writes(task, placeOf(line, fields[i])) : queue.reads(task, placeOf(line, fields[i]));
    task.text(names[i][0], kindName(line, shifted(ConfigKey::DKind, i))).array(names[i][1], listOf(line, steps[i]));
  }
  task.integer("slices", in.get("slices")).integer("split", line.key(ConfigKey::Split));
  task.integer("inner", line.key(ConfigKey::Inner));
  if (int64_t causal = line.key(ConfigKey::Causal))
    task.integer("causal", causal);
  if (line.key(ConfigKey::CountPad))
    task.set("count_pad", builder.getUnitAttr());
  for (const char *number : {"imm0", "imm1"})
    if (const auto bits = static_cast<uint32_t>(in.get(number)))
      task.set(number, builder.getF32FloatAttr(llvm::bit_cast<float>(bits)));
  if (DictionaryAttr window = windowClauseOf(builder, line))
    task.set("window", window);
  clause(queue, task, "index", line, "index");
  clause(queue, task, "count", line, "n");
  task.create();
}

Value UserWriter::descriptor(const UserLine &line) {
  Builder &builder = to.builder;
  DescriptorSpec spec{kindName(line, ConfigKey::Kind), {}, line.key(ConfigKey::Unit)};
  if (line.key(ConfigKey::To) != static_cast<int64_t>(hw::ElemKind::Raw))
    spec.to = kindName(line, ConfigKey::To);
  for (size_t dim = 0; dim < 4; ++dim)
    spec.dims.push_back({line.key(shifted(ConfigKey::N0, dim)), line.key(shifted(ConfigKey::S0, dim)),
                         line.key(shifted(ConfigKey::T0, dim))});
  spec.keepsDims = true;
  spec.sourceUnitStep = line.key(ConfigKey::SrcSlice), spec.targetUnitStep = line.key(ConfigKey::DstSlice);
  spec.sourceSubunitStep = line.key(ConfigKey::SrcCore);
  NamedAttrList further;
  auto differs = [&](ConfigKey key) { return line.key(key) != hw::findConfigKey(key)->byDefault; };
  for (auto [name, key] : {std::pair<StringRef, ConfigKey>("source_band", ConfigKey::SrcBand),
                           {"target_band", ConfigKey::DstBand},
                           {"tail", ConfigKey::Tail},
                           {"element_stride", ConfigKey::ElemStride},
                           {"index_pitch", ConfigKey::IndexPitch},
                           {"index_range", ConfigKey::IndexRange}})
    if (differs(key))
      further.set(name, builder.getI64IntegerAttr(line.key(key)));
  for (auto [name, key] : {std::pair<StringRef, ConfigKey>("retype", ConfigKey::Retype),
                           {"source_rows", ConfigKey::SrcMode},
                           {"target_rows", ConfigKey::DstMode}})
    if (line.key(key))
      further.set(name, builder.getUnitAttr());
  for (auto [name, key] : {std::pair<StringRef, ConfigKey>("low", ConfigKey::Lo0), {"high", ConfigKey::Hi0}})
    if (llvm::any_of(ArrayRef<size_t>{0, 1, 2, 3}, [&](size_t dim) { return differs(shifted(key, dim)); }))
      further.set(name, builder.getDenseI64ArrayAttr(listOf(line, key)));
  if (differs(ConfigKey::IndexKind))
    further.set("index_kind", builder.getStringAttr(kindName(line, ConfigKey::IndexKind)));
  if (DictionaryAttr window = windowClauseOf(builder, line))
    further.set("window", window);
  return to.writer.ProgramWriter::descriptor(spec, further);
}

void UserWriter::move(const QueueWriter &queue, const UserLine &line) {
  const hw::Instruction &in = line.instruction;
  const Value how = descriptor(line);
  TaskWriter task = queue.task(dlir::DmaCopyOp::getOperationName());
  task.text("from", hw::nameOf(static_cast<hw::Memory>(in.get("src"))))
      .text("to", hw::nameOf(static_cast<hw::Memory>(in.get("dst"))))
      .with(how);
  queue.reads(task, placeOf(line, "saddr"));
  queue.writes(task, placeOf(line, "daddr"));
  task.integer("units", in.get("slices"));
  if (static_cast<hw::Memory>(in.get("dst")) == hw::Memory::WB)
    task.integer("subunits", in.get("cores"));
  const Address rows[] = {valueOf(line, "srow"), valueOf(line, "drow")};
  if (line.key(ConfigKey::SrcMode) || line.key(ConfigKey::DstMode))
    queue.sums(task, "rows", rows);
  clause(queue, task, "count", line, "n");
  task.create();
}

void UserWriter::reshape(const QueueWriter &queue, const UserLine &line) {
  const hw::Instruction &in = line.instruction;
  const Value how = descriptor(line);
  TaskWriter task = queue.task("corsair.reshape");
  task.text("function", in.opcode == Opcode::Extract ? "extract" : "insert")
      .text("rule", hw::text::nameOf(static_cast<hw::Rule>(in.get("rule"))))
      .with(how);
  queue.reads(task, placeOf(line, "saddr"));
  queue.writes(task, placeOf(line, "daddr"));
  if (memoryOf(line, "iaddr"))
    queue.reads(task, placeOf(line, "iaddr"));
  task.integer("slice", in.get("slice"));
  clause(queue, task, "pixel", line, "pix");
  clause(queue, task, "count", line, "n");
  task.create();
}

void UserWriter::transpose(const QueueWriter &queue, const UserLine &line) {
  const hw::Instruction &in = line.instruction;
  TaskWriter task = queue.task("corsair.reshape");
  task.text("function", "transpose");
  queue.reads(task, placeOf(line, "saddr"));
  queue.writes(task, placeOf(line, "daddr"));
  for (auto [name, field] : {std::pair("slice", "slice"),
                             {"element", "esize"},
                             {"source_pitch", "spitch"},
                             {"target_pitch", "dpitch"},
                             {"source_batch", "sbatch"},
                             {"target_batch", "dbatch"}})
    task.integer(name, in.get(field));
  queue.sum(task, "rows", valueOf(line, "rows"));
  queue.sum(task, "columns", valueOf(line, "cols"));
  queue.sum(task, "batch", valueOf(line, "batch"));
  task.create();
}

void UserWriter::product(const QueueWriter &queue, const UserLine &line) {
  const hw::Instruction &in = line.instruction;
  TaskWriter task = queue.task("corsair.matmul");
  queue.reads(task, placeOf(line, "ib"));
  queue.reads(task, placeOf(line, "wb"));
  queue.writes(task, placeOf(line, "ob"));
  if (memoryOf(line, "st"))
    queue.reads(task, placeOf(line, "st"));
  for (auto [name, field] :
       {std::pair("num_imc", "imc"), {"ppr_mode", "ppr"}, {"groups", "groups"}, {"core", "core"}, {"slices", "slices"}})
    task.integer(name, in.get(field));
  task.text("activation_kind", kindName(line, ConfigKey::ActKind));
  task.text("weight_kind", kindName(line, ConfigKey::WeightKind));
  for (auto [name, key] : {std::pair<StringRef, ConfigKey>("chunks", ConfigKey::KChunks),
                           {"activation_chunk", ConfigKey::IbChunk},
                           {"activation_step", ConfigKey::IbStep},
                           {"result_row", ConfigKey::ObRow},
                           {"result_group", ConfigKey::ObGroup},
                           {"result_step", ConfigKey::ObStep},
                           {"stash_chunk", ConfigKey::StChunk},
                           {"stash_group", ConfigKey::StGroup},
                           {"stash_step", ConfigKey::StStep}})
    task.integer(name, line.key(key));
  if (line.key(ConfigKey::StepAcc))
    task.set("accumulate_steps", queue.builder().getUnitAttr());
  for (auto [name, field] :
       {std::pair("rows", "rows"), {"row", "row"}, {"k0", "k0"}, {"accumulate", "acc"}, {"steps", "steps"}})
    clause(queue, task, name, line, field);
  task.create();
}

//===----------------------------------------------------------------------===//
// Places that indices choose
//===----------------------------------------------------------------------===//

static bool isIndexed(const UserLine &line) {
  const hw::Instruction &in = line.instruction;
  return (in.opcode == Opcode::Extract || in.opcode == Opcode::Insert) &&
         llvm::is_contained({hw::Rule::Gather, hw::Rule::Scatter}, static_cast<hw::Rule>(in.get("rule")));
}

Status UserWriter::checkIndexed(ArrayRef<UserLine> lines) const {
  using hw::access::Interval;
  SmallVector<Interval> counters; // of open loops
  auto valueOf = [&](const hw::Operand &operand) {
    Interval value = Interval::of(operand.base);
    for (const hw::Term &term : operand.terms)
      value.add(term.source == hw::kTermQuad ? Interval{0, to.quads - 1} : counters[term.source], term.scale);
    return value;
  };
  for (const UserLine &line : lines) {
    const hw::Instruction &in = line.instruction;
    if (in.opcode == Opcode::Loop) {
      const Interval trips = valueOf(in.operands[in.info().field("n")]);
      counters.push_back(trips.known ? Interval{0, std::max<hw::access::Wide>(0, trips.high - 1)} : trips);
    } else if (in.opcode == Opcode::EndLoop) {
      counters.pop_back();
    }
    if (!isIndexed(line))
      continue;
    hw::access::Site site{&in, &to.machine, 0, {}};
    for (const hw::Operand &operand : in.operands)
      site.values.push_back(valueOf(operand));
    std::vector<hw::Access> found;
    hw::access::addAccesses(site, &line.config, found);
    for (const hw::Access &access : found) {
      if (access.all)
        continue;
      const std::string &buffer = line.buffers.at(access.write ? "daddr" : "saddr");
      const int64_t room = bytes.at(buffer);
      if (access.range && access.range->begin >= 0 && access.range->end <= room)
        continue;
      const std::string where =
          access.range ? "bytes " + std::to_string(access.range->begin) + " to " + std::to_string(access.range->end - 1)
                       : "any bytes";
      return text.name.refusal(line.number, std::string("by indices below irange it may ") +
                                                (access.write ? "write " : "read ") + where + " of '" + buffer +
                                                "', which has " + std::to_string(room) +
                                                "; give an irange= of as many items as there are");
    }
  }
  return Status::ok();
}
