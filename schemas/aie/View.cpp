//===- View.cpp - what dmx-inspect shows of an image ----------------------===//
#include "Image.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace dmx::aie {
namespace {

using Json = nlohmann::ordered_json;
using Text = std::optional<std::string>;
using Bytes = std::span<const std::byte>;

std::optional<Image> imageOf(Bytes code, std::string_view kernel, std::string &error) {
  std::optional<Image> image = readImage(code, error);
  if (image && !kernel.empty())
    std::erase_if(image->kernels, [&](const KernelCode &each) { return each.name != kernel; });
  return image;
}

std::string roleOf(const Argument &argument) {
  if (argument.packed && !argument.kept())
    return "constant";
  return std::string(argument.kept() ? "kept " : "") + (argument.output ? "output" : "input");
}

Json describeKernel(const Image &image, const KernelCode &kernel) {
  Json counts = Json::object(), arguments = Json::array();
  using Kind = ControlOp::Kind;
  for (Kind kind : {Kind::Write, Kind::BlockWrite, Kind::MaskWrite, Kind::Sync, Kind::Patch})
    counts[std::string(nameOf(kind))] = std::ranges::count(kernel.control, kind, &ControlOp::kind);
  uint64_t ddr = 0;
  for (const Argument &argument : kernel.arguments) {
    ddr += argument.ddrBytes();
    Json shape = Json::array();
    for (const Axis &axis : argument.axes)
      shape.push_back(axis.extent);
    arguments.push_back({{"name", argument.name},
                         {"role", roleOf(argument)},
                         {"type", hostNameOf(argument.element)},
                         {"shape", shape},
                         {"form", nameOf(argument.element)},
                         {"pieces", Json::array()}});
  }
  return {
      {"name", kernel.name},         {"runs_on", image.machine + ", overlay " + image.overlays[kernel.overlay].name},
      {"streams", {"control"}},      {"instructions", counts},
      {"footprint", {{"DDR", ddr}}}, {"arguments", arguments}};
}

std::string shapeOf(const Argument &argument) {
  std::string text;
  for (const Axis &axis : argument.axes)
    text += (text.empty() ? "" : "x") + (axis.dim ? "size" + std::to_string(axis.dim - 1) + "<=" : std::string()) +
            std::to_string(axis.extent);
  return text;
}

/// Where its numbers lie, a dim in brackets: stride, +number of the first one, /parts at their distance.
std::string placeOf(const Argument &argument) {
  std::string text;
  for (const Axis &axis : argument.axes) {
    text += " [" + std::to_string(axis.stride);
    if (axis.first)
      text += " +" + std::to_string(axis.first);
    if (axis.split > 1)
      text += " /" + std::to_string(axis.split) + " at " + std::to_string(axis.phase);
    text += "]";
  }
  return argument.packed && !argument.kept() ? "" : " at" + text;
}

/// The control stream; what depends on sizes of a dispatch is said before an op.
void print(std::string &text, const KernelCode &kernel) {
  for (size_t i = 0; i < kernel.most.size(); ++i)
    text += "  size " + std::to_string(i) + " <= " + std::to_string(kernel.most[i]) + "\n";
  for (size_t i = 0; i < kernel.control.size(); ++i) {
    text += "  ";
    for (const Guard &guard : kernel.guards)
      if (guard.first <= i && i - guard.first < guard.count)
        text += "if size " + std::to_string(guard.dim) + " > " + std::to_string(guard.above) + ": ";
    text += textOf(kernel.control[i]) + "\n";
    for (const DimWord &word : kernel.dimWords)
      if (word.op == i)
        text += "    word " + std::to_string(word.word) + " = " + std::to_string(word.factor) + " * size " +
                std::to_string(word.dim) + "\n";
  }
}

void print(std::string &text, const Overlay &overlay) {
  text += "overlay \"" + overlay.name + "\"\n";
  for (const CdoCommand &command : overlay.initial) {
    uint32_t address = static_cast<uint32_t>(command.address);
    if (command.kind == CdoCommand::Kind::BlockWrite)
      text += "  " + textOf(blockWriteOp(address, command.data)) + "\n";
    else if (command.kind == CdoCommand::Kind::MaskWrite)
      text += "  " + textOf(maskWriteOp(address, command.value, command.mask)) + "\n";
    else if (command.kind == CdoCommand::Kind::Write)
      text += "  " + textOf(writeOp(address, command.value)) + "\n";
  }
  for (const CoreProgram &program : overlay.programs) {
    text += "  core " + textOf(program.tile) + "\n";
    for (size_t i = 0; i < program.code.size(); ++i)
      text += "    " + std::to_string(i) + ": " + textOf(program.code[i]) + "\n";
  }
}

} // namespace

Text describeCode(Bytes code, std::string_view kernel, bool, std::string &error) {
  std::optional<Image> image = imageOf(code, kernel, error);
  if (!image)
    return std::nullopt;
  Json kernels = Json::array();
  for (const KernelCode &each : image->kernels)
    kernels.push_back(describeKernel(*image, each));
  Json all = {{"machine", {{"name", image->machine}}}, {"memories", Json::array()}, {"kernels", kernels}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Text printCode(Bytes code, std::string_view kernel, std::string &error) {
  std::optional<Image> image = imageOf(code, kernel, error);
  if (!image)
    return std::nullopt;
  std::string text = "machine " + image->machine + "\n";
  for (const Overlay &overlay : image->overlays)
    print(text, overlay);
  for (size_t i = 0; i < image->functions.size(); ++i) {
    const UserFunction &function = image->functions[i];
    text += "function " + std::to_string(i) + " \"" + function.symbol + "\" of the kernel \"" + function.kernel +
            "\", " + std::to_string(function.clocks) + " clocks a call\n";
    for (const UserFunction::Buffer &buffer : function.buffers)
      text += "  " + std::string(buffer.written ? "writes" : "reads") + " \"" + buffer.name + "\" " +
              std::to_string(buffer.bytes) + " bytes\n";
  }
  for (const KernelCode &each : image->kernels) {
    text += "kernel \"" + each.name + "\" overlay \"" + image->overlays[each.overlay].name + "\"\n";
    for (const Argument &argument : each.arguments)
      text += "  argument \"" + argument.name + "\" " + roleOf(argument) + " " + shapeOf(argument) + " as " +
              std::string(nameOf(argument.element)) + " " + std::to_string(argument.rows) + "x" +
              std::to_string(argument.pitch) + placeOf(argument) + "\n";
    print(text, each);
  }
  return text;
}

Text compareCode(Bytes a, Bytes b, std::string &error) {
  Text left = printCode(a, "", error), right = left ? printCode(b, "", error) : std::nullopt;
  if (!left || !right)
    return std::nullopt;
  Json all = Json::array();
  if (*left != *right)
    all.push_back({{"what", "image"}, {"name", "all kernels"}, {"a", *left}, {"b", *right}});
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace dmx::aie
