//===- Pickle.cpp - tensors of a torch.save file --------------------------===//
#include "Pickle.h"

#include <deque>
#include <variant>

namespace dmxc::torchfe {
namespace {

/// More values than any state dict needs.
constexpr size_t kMaxStack = 1 << 20, kMaxMemo = 1 << 24, kMaxValues = 1 << 24;

struct Failure {
  std::string text;
};
[[noreturn]] void fail(std::string_view text) { throw Failure{std::string(text)}; }

struct Value;
using Ref = Value *; ///< owned by the machine: values may refer to each other in circles
using List = std::vector<Ref>;

struct Storage {
  std::string typeName, key;
};
struct Global {
  std::string name; ///< "module name"
};
struct Dict {
  std::vector<std::pair<Ref, Ref>> items;
};
struct Mark {};
/// Something inert that nobody looks into: a size, a device, a float.
struct Other {};

struct Value {
  std::variant<Other, bool, int64_t, std::string, List, Dict, Global, Storage, PickledTensor, Mark> content;
};

/// Element types by the names of torch's storage classes and dtypes.
std::optional<DType> dtypeNamed(std::string_view name) {
  static const std::pair<const char *, DType> table[] = {{"DoubleStorage", DType::F64},
                                                         {"FloatStorage", DType::F32},
                                                         {"HalfStorage", DType::F16},
                                                         {"BFloat16Storage", DType::BF16},
                                                         {"LongStorage", DType::I64},
                                                         {"IntStorage", DType::I32},
                                                         {"ShortStorage", DType::I16},
                                                         {"CharStorage", DType::I8},
                                                         {"ByteStorage", DType::U8},
                                                         {"BoolStorage", DType::Bool},
                                                         {"float64", DType::F64},
                                                         {"float32", DType::F32},
                                                         {"float16", DType::F16},
                                                         {"bfloat16", DType::BF16},
                                                         {"int64", DType::I64},
                                                         {"int32", DType::I32},
                                                         {"int16", DType::I16},
                                                         {"int8", DType::I8},
                                                         {"uint8", DType::U8},
                                                         {"bool", DType::Bool},
                                                         {"uint16", DType::U16},
                                                         {"uint32", DType::U32},
                                                         {"uint64", DType::U64},
                                                         {"float8_e4m3fn", DType::F8E4M3FN},
                                                         {"float8_e5m2", DType::F8E5M2},
                                                         {"float8_e4m3fnuz", DType::F8E4M3FNUZ},
                                                         {"float8_e5m2fnuz", DType::F8E5M2FNUZ}};
  for (const auto &[known, type] : table)
    if (name == known)
      return type;
  return std::nullopt;
}

bool isAllowed(const std::string &global) {
  static const char *const fixed[] = {"collections OrderedDict",
                                      "torch._utils _rebuild_tensor_v2",
                                      "torch._utils _rebuild_tensor_v3",
                                      "torch._utils _rebuild_parameter",
                                      "torch.storage UntypedStorage",
                                      "torch._utils _rebuild_parameter_with_state",
                                      "torch Size",
                                      "torch device",
                                      "torch ComplexFloatStorage",
                                      "torch ComplexDoubleStorage",
                                      "torch complex64",
                                      "torch complex128"};
  for (const char *name : fixed)
    if (global == name)
      return true;
  return global.starts_with("torch ") && dtypeNamed(std::string_view(global).substr(6));
}

class Machine {
public:
  explicit Machine(std::span<const std::byte> code) : code(code) {}

  Ref run() {
    for (;;) {
      uint8_t op = u8();
      if (op == '.')
        return pop();
      step(op);
      if (stack.size() > kMaxStack || memo.size() > kMaxMemo || made.size() > kMaxValues)
        fail("it makes more values than any state dict");
    }
  }

private:
  //--- bytes
  std::string_view take(uint64_t count) {
    if (count > code.size() - at)
      fail("it ends in the middle of an opcode");
    std::string_view text(reinterpret_cast<const char *>(code.data()) + at, count);
    at += count;
    return text;
  }
  uint8_t u8() { return static_cast<uint8_t>(take(1)[0]); }
  uint64_t little(int count) {
    std::string_view bytes = take(count);
    uint64_t value = 0;
    for (int i = 0; i < count; ++i)
      value |= uint64_t(static_cast<uint8_t>(bytes[i])) << (8 * i);
    return value;
  }
  std::string line() {
    std::string text;
    for (char c; (c = take(1)[0]) != '\n'; text += c)
      if (text.size() > 256)
        fail("a name in it is too long");
    return text;
  }

  //--- the stack
  template <typename T> void push(T content) { stack.push_back(&made.emplace_back(Value{std::move(content)})); }
  Ref pop() {
    if (stack.empty())
      fail("it takes a value from an empty stack");
    Ref value = stack.back();
    stack.pop_back();
    if (std::holds_alternative<Mark>(value->content))
      fail("it takes a mark for a value");
    return value;
  }
  Value &top() {
    if (stack.empty())
      fail("it takes a value from an empty stack");
    return *stack.back();
  }
  /// What stands above the last mark, which goes too.
  List popToMark() {
    size_t from = stack.size();
    while (from > 0 && !std::holds_alternative<Mark>(stack[from - 1]->content))
      --from;
    if (from == 0)
      fail("a mark is missing");
    List items(stack.begin() + from, stack.end());
    stack.resize(from - 1);
    return items;
  }
  void tuple(size_t count) {
    List items(count);
    for (size_t i = count; i-- > 0;)
      items[i] = pop();
    push(std::move(items));
  }
  template <typename T> T &as(Ref value, const char *what) {
    T *content = std::get_if<T>(&value->content);
    if (!content) {
      std::string message = "it has no ";
      message.append(what).append(" where one must be");
      fail(message);
    }
    return *content;
  }

  //--- opcodes
  void step(uint8_t op);
  bool stepNumber(uint8_t op);
  bool stepContainer(uint8_t op);
  void remember(uint64_t key) {
    top();
    memo[key] = stack.back();
  }
  void recall(uint64_t key) {
    auto found = memo.find(key);
    if (found == memo.end())
      fail("it recalls the value " + std::to_string(key) + ", which it never stored");
    stack.push_back(found->second);
  }
  void pushGlobal();
  void setItems(const List &items);
  void persistentId();
  void reduce();
  PickledTensor tensorOf(const List &arguments, bool withType);

  std::span<const std::byte> code;
  uint64_t at = 0;
  std::deque<Value> made;
  List stack;
  std::map<uint64_t, Ref> memo;
};

bool Machine::stepNumber(uint8_t op) {
  switch (op) {
  case 'K':
    push(int64_t(little(1)));
    return true;
  case 'M':
    push(int64_t(little(2)));
    return true;
  case 'J':
    push(int64_t(int32_t(little(4))));
    return true;
  case 0x8a: {
    uint8_t count = u8();
    if (count > 8)
      fail("an integer in it is too large");
    uint64_t bits = little(count);
    if (count > 0 && count < 8 && (bits >> (8 * count - 1)))
      bits |= ~uint64_t(0) << (8 * count);
    push(int64_t(bits));
    return true;
  }
  case 'G':
    take(8);
    push(Other{});
    return true;
  case 'N':
    push(Other{});
    return true;
  case 0x88:
  case 0x89:
    push(op == 0x88);
    return true;
  case 'X':
    push(std::string(take(little(4))));
    return true;
  default:
    return false;
  }
}

bool Machine::stepContainer(uint8_t op) {
  switch (op) {
  case '(':
    push(Mark{});
    return true;
  case ')':
    push(List{});
    return true;
  case 't':
    push(popToMark());
    return true;
  case 0x85:
  case 0x86:
  case 0x87:
    tuple(op - 0x84);
    return true;
  case ']':
    push(List{});
    return true;
  case 'a': {
    Ref item = pop();
    top();
    as<List>(stack.back(), "list").push_back(item);
    return true;
  }
  case 'e': {
    List items = popToMark();
    top();
    List &list = as<List>(stack.back(), "list");
    list.insert(list.end(), items.begin(), items.end());
    return true;
  }
  case '}':
    push(Dict{});
    return true;
  case 's': {
    List items(2);
    items[1] = pop();
    items[0] = pop();
    setItems(items);
    return true;
  }
  case 'u':
    setItems(popToMark());
    return true;
  default:
    return false;
  }
}

void Machine::step(uint8_t op) {
  if (stepNumber(op) || stepContainer(op))
    return;
  switch (op) {
  case 0x80:
    if (u8() > 5)
      fail("its protocol is unknown");
    return;
  case 'q':
    return remember(little(1));
  case 'r':
    return remember(little(4));
  case 'h':
    return recall(little(1));
  case 'j':
    return recall(little(4));
  case 'c':
    return pushGlobal();
  case 'Q':
    return persistentId();
  case 'R':
    return reduce();
  case 'b': // the state of a module's dictionary: metadata, which means nothing here
    pop();
    top();
    return;
  default:
    fail("it has the opcode " + std::to_string(op) + ", which no tensor needs");
  }
}

void Machine::pushGlobal() {
  std::string module = line(), name = line(), global = module + " " + name;
  if (!isAllowed(global))
    fail("it asks for the Python object '" + module + "." + name + "', which is none that tensors need");
  push(Global{global});
}

void Machine::setItems(const List &items) {
  top();
  Dict &dict = as<Dict>(stack.back(), "dictionary");
  if (items.size() % 2)
    fail("a key in it has no value");
  for (size_t i = 0; i < items.size(); i += 2)
    dict.items.push_back({items[i], items[i + 1]});
}

/// ("storage", class, key, location, numel).
void Machine::persistentId() {
  Ref id = pop();
  const List &parts = as<List>(id, "storage");
  if (parts.size() != 5 || as<std::string>(parts[0], "storage") != "storage")
    fail("it refers to something that is no storage");
  const std::string &type = as<Global>(parts[1], "storage class").name;
  push(Storage{type.substr(type.find(' ') + 1), as<std::string>(parts[2], "storage key")});
}

PickledTensor Machine::tensorOf(const List &arguments, bool withType) {
  if (arguments.size() < (withType ? 7u : 6u))
    fail("a tensor in it lacks arguments");
  const Storage &storage = as<Storage>(arguments[0], "storage");
  PickledTensor tensor;
  tensor.storage = storage.key;
  tensor.typeName = storage.typeName;
  if (withType) {
    const std::string &type = as<Global>(arguments[6], "dtype").name;
    tensor.typeName = type.substr(type.find(' ') + 1);
  }
  tensor.dtype = dtypeNamed(tensor.typeName);
  if (tensor.typeName == "ComplexFloatStorage" || tensor.typeName == "complex64")
    tensor.parts = DType::F32;
  if (tensor.typeName == "ComplexDoubleStorage" || tensor.typeName == "complex128")
    tensor.parts = DType::F64;
  tensor.offset = as<int64_t>(arguments[1], "storage offset");
  for (Ref size : as<List>(arguments[2], "size"))
    tensor.sizes.push_back(as<int64_t>(size, "size"));
  for (Ref stride : as<List>(arguments[3], "stride"))
    tensor.strides.push_back(as<int64_t>(stride, "stride"));
  return tensor;
}

void Machine::reduce() {
  Ref arguments = pop(), function = pop();
  const Global *global = std::get_if<Global>(&function->content);
  if (!global)
    fail("it calls something that is no function");
  const List &list = as<List>(arguments, "argument tuple");
  if (global->name == "collections OrderedDict")
    return push(Dict{});
  if (global->name.ends_with(" _rebuild_tensor_v2") || global->name.ends_with(" _rebuild_tensor_v3"))
    return push(tensorOf(list, global->name.back() == '3'));
  if (global->name.find(" _rebuild_parameter") != std::string::npos) {
    if (list.empty())
      fail("a parameter in it lacks its tensor");
    return push(as<PickledTensor>(list[0], "tensor"));
  }
  if (global->name == "torch Size") // inert, but its numbers count
    return list.empty() ? push(List{}) : stack.push_back(list[0]);
  if (global->name == "torch device")
    return push(Other{});
  fail("it calls '" + global->name + "', which is no function that makes tensors");
}

} // namespace

Result<std::map<std::string, PickledTensor>> readPickledTensors(std::span<const std::byte> pickle) {
  try {
    Machine machine(pickle);
    Ref top = machine.run();
    const Dict *dict = std::get_if<Dict>(&top->content);
    if (!dict)
      fail("its value is no dictionary");
    std::map<std::string, PickledTensor> tensors;
    for (const auto &[key, value] : dict->items) {
      const auto *name = std::get_if<std::string>(&key->content);
      const auto *tensor = std::get_if<PickledTensor>(&value->content);
      if (name && tensor && !tensors.emplace(*name, *tensor).second)
        fail("the key '" + name->substr(0, 100) + "' stands twice");
    }
    return tensors;
  } catch (const Failure &failure) {
    return modelError("the pickle is refused: " + failure.text);
  }
}

} // namespace dmxc::torchfe
