//===- ScheduleText.cpp - the texts of scripts, and what is said of them --===//
#include "HeldMessages.h"
#include "Schedule.h"

#include "dmxc/Dialect/DMIR/Text.h"
#include "dmxc/Phases/PhaseTable.h"
#include "dmxc/Support/MappedFile.h"

#include "mlir/IR/Verifier.h"

using namespace mlir;

namespace dmxc::driver {

std::string placeText(Location place, bool column) {
  auto line = dyn_cast<FileLineColLoc>(place);
  if (!line)
    return "";
  std::string text = line.getFilename().str() + ":" + std::to_string(line.getLine());
  return column ? text + ":" + std::to_string(line.getColumn()) : text;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

bool Schedule::load(const Options &options) {
  set = options.knobs;
  return checkPaths(options.schedulePaths) &&
         llvm::all_of(options.schedules, [&](const std::string &path) { return read(path, {}, options); });
}

/// Whether the stops of a script are those that this compile comes by.
bool Schedule::checkStops(const Script &script, const Options &options) {
  bool begun = options.from.empty();
  std::set<std::string> passed;
  std::string names;
  for (const Stop &stop : stops(phases)) {
    begun |= stop.name == options.from;
    if (begun && stop.phase->makesIR()) {
      passed.insert(stop.name);
      names += (names.empty() ? "\"" : ", \"") + stop.name + "\"";
    }
    if (stop.name == options.emit)
      break;
  }
  for (const Entry &entry : script.entries)
    if (!passed.contains(entry.stop)) {
      mlir::transform::NamedSequenceOp sequence = entry.sequence;
      diagnostics.report(modelError("@" + sequence.getName().str() + " is to run at \"" + entry.stop +
                                    "\", which this compile does not come by; scripts run behind " + names),
                         "schedule-script", placeText(sequence.getLoc(), /*column=*/true));
      return false;
    }
  return true;
}

/// Inner ops before outer ones: a sequence asks its ops for their effects before MLIR has verified them.
static bool isSound(ModuleOp script) {
  WalkResult inner = script.walk([](Operation *op) {
    bool isOuter = isa<ModuleOp, mlir::transform::NamedSequenceOp>(op);
    return isOuter || succeeded(verify(op, /*verifyRecursively=*/false)) ? WalkResult::advance()
                                                                         : WalkResult::interrupt();
  });
  return !inner.wasInterrupted() && succeeded(verify(script));
}

/// The text of a file as a module that is not verified yet; null after an error was reported.
OwningOpRef<ModuleOp> Schedule::parse(const std::string &path, std::string &text) {
  if (StringRef stem = path; stem.consume_back(".py")) {
    diagnostics.report(modelError("is Python, which dmxc does not run; print its script and give that: python3 -m "
                                  "dmxsched " +
                                  path + " -o " + stem.str() + ".mlir"),
                       "schedule-script", path);
    return {};
  }
  auto file = MappedFile::open(path); // which refuses a pipe, that would be waited for
  if (!file) {
    diagnostics.report(file.error(), "io", path);
    return {};
  }
  auto bytes = (*file)->bytes();
  text.assign(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  OwningOpRef<ModuleOp> module;
  std::vector<mlir::Diagnostic> messages;
  {
    Held held(context);
    module = dmir::parseText(text, path, context, /*verifies=*/false);
    messages = held.take();
  }
  for (mlir::Diagnostic &message : messages)
    rewrite(message);
  return module;
}

bool Schedule::isSoundScript(Script &script) {
  std::vector<mlir::Diagnostic> messages;
  bool sound = false;
  {
    Held held(context);
    sound = isSound(*script.module);
    messages = held.take();
  }
  for (mlir::Diagnostic &message : messages)
    rewrite(message);
  return sound;
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

/// Behind which scripts may run, as text.
std::string Schedule::stopNames() const {
  std::string names;
  for (const Stop &stop : stops(phases))
    if (stop.phase->makesIR())
      names += (names.empty() ? "\"" : ", \"") + stop.name + "\"";
  return names;
}

std::string Schedule::nearStop(StringAttr name) const {
  std::vector<std::string> names;
  for (const Stop &stop : stops(phases))
    if (stop.phase->makesIR())
      names.push_back(stop.name);
  return transform::nearName(name, names);
}

/// Takes up a sequence that runs behind a stop, if it is the only one there and takes the model.
bool Schedule::addEntry(Script &script, mlir::transform::NamedSequenceOp sequence, const std::string &stop) {
  std::string wrong;
  if (auto other = script.at(stop))
    wrong = "the script has two entries, @" + other.getName().str() + " and @" + sequence.getName().str() +
            ", behind \"" + stop + "\"; put one of them into a file of its own: --schedule may be repeated";
  else if (sequence.getBody().empty() || sequence.getBody().getNumArguments() != 1)
    wrong = "@" + sequence.getName().str() + " takes one argument, the model: (%m: !transform.any_op)";
  if (wrong.empty())
    script.entries.push_back({sequence, stop});
  else
    diagnostics.report(modelError(wrong), "schedule-script", placeText(sequence.getLoc(), /*column=*/true));
  return wrong.empty();
}

bool Schedule::findEntries(Script &script, bool isIncluded) {
  constexpr StringLiteral main = mlir::transform::TransformDialect::kTransformEntryPointSymbolName;
  auto fail = [&](const std::string &text, const std::string &place) {
    diagnostics.report(modelError(text), "schedule-script", place);
    return false;
  };
  for (auto sequence : script.module->getOps<mlir::transform::NamedSequenceOp>()) {
    Attribute hook = sequence->getAttr("dmx.at");
    auto name = dyn_cast_or_null<StringAttr>(hook);
    if (const std::string known = stopNames(); hook && (!name || !StringRef(known).contains(valueText(hook))))
      return fail("@" + sequence.getName().str() + " is to run at " + valueText(hook) +
                      "; in this compile scripts run behind " + known + (name ? nearStop(name) : ""),
                  placeText(sequence.getLoc(), /*column=*/true));
    if ((hook || sequence.getName() == main) &&
        !addEntry(script, sequence, hook ? name.getValue().str() : kPartition.str()))
      return false;
  }
  return isIncluded || !script.entries.empty() ||
         fail("the script has no transform.named_sequence @__transform_main, nor one with {dmx.at = \"partition\"}",
              script.path);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

/// What follows a percent sign.
static std::string valueName(StringRef text) {
  return text.take_while([](char c) { return llvm::isAlnum(c) || StringRef("_$.-").contains(c); }).str();
}

/// The value of the line of a text that says of its op to be at `place`, as those that Python prints do.
static std::string printedHandle(StringRef text, FileLineColLoc place) {
  std::string said;
  llvm::raw_string_ostream(said) << place;
  size_t at = text.find(said);
  StringRef line = at == StringRef::npos ? StringRef() : text.take_front(at).rsplit('\n').second.ltrim();
  return line.consume_front("%") ? valueName(line) : "";
}

/// How the script calls the value that an op at `place` makes; "" where that cannot be seen.
std::string Schedule::handleAt(Location place) const {
  auto line = dyn_cast<FileLineColLoc>(place);
  for (const Script &script : scripts) {
    if (line && line.getFilename() != script.path)
      if (std::string name = printedHandle(script.text, line); !name.empty())
        return name;
    if (!line || line.getFilename() != script.path)
      continue;
    StringRef rest(script.text);
    for (unsigned i = 1; i < line.getLine(); ++i)
      rest = rest.split('\n').second;
    StringRef before = rest.split('\n').first.take_front(line.getColumn() ? line.getColumn() - 1 : 0).rtrim();
    if (!before.consume_back("="))
      before = rest.split('\n').first.drop_front(std::min<size_t>(before.size(), rest.size())); // an argument itself
    size_t percent = before.rfind('%');
    return percent == StringRef::npos ? "" : valueName(before.drop_front(percent + 1));
  }
  return "";
}

/// The op of a script at a place; null where there is none.
Operation *Schedule::opAt(Location place) const {
  Operation *found = nullptr;
  for (const Script &script : scripts)
    if (ModuleOp module = script.module.get())
      module.walk([&](Operation *op) {
        if (op->getLoc() == place && isa<mlir::transform::TransformOpInterface>(op))
          found = op;
      });
  return found;
}

/// What an include at a place looks for, and what is near.
std::string Schedule::missingSequence(Location place) const {
  auto include = dyn_cast_or_null<mlir::transform::IncludeOp>(opAt(place));
  if (!include)
    return "calls no sequence that there is [schedule-script]";
  std::string name = "@" + include.getTarget().getRootReference().str();
  for (FlatSymbolRefAttr nested : include.getTarget().getNestedReferences())
    name += "::@" + nested.getValue().str();
  std::vector<std::string> names;
  for (auto sequence : include->getParentOfType<ModuleOp>().getOps<mlir::transform::NamedSequenceOp>())
    names.push_back("@" + sequence.getSymName().str());
  return "there is no sequence '" + name + "'" + transform::nearName(name, names) +
         "; transform.dmx.include takes in those of other files [schedule-script]";
}

/// Says what MLIR says of scripts as our messages are; emits it.
void Schedule::rewrite(mlir::Diagnostic &diagnostic) {
  std::string text = diagnostic.str();
  StringRef view = text;
  mlir::Diagnostic better(diagnostic.getLocation(), diagnostic.getSeverity());
  bool keepNotes = true;
  if (view.contains("invalidated by a previously executed transform op")) {
    std::string handle, by, where;
    for (mlir::Diagnostic &note : diagnostic.getNotes()) {
      if (StringRef(note.str()).starts_with("handle to invalidated ops"))
        handle = handleAt(note.getLocation());
      if (StringRef(note.str()).starts_with("invalidated by this transform op")) {
        where = placeText(note.getLocation(), /*column=*/false);
        if (Operation *op = opAt(note.getLocation()))
          by = op->getName().getStringRef();
      }
    }
    better << "'" << (handle.empty() ? "the handle" : handle) << "' was consumed by '" << by << "' at " << where
           << "; go on with the handles that it returned [schedule-consumed]";
    keepNotes = false;
  } else if (size_t at = view.find("'transform.");
             at != StringRef::npos && (view.contains("is unknown") || view.contains("unregistered"))) {
    StringRef name = view.substr(at + 1).split('\'').first;
    std::vector<std::string> names;
    for (RegisteredOperationName known : context.getRegisteredOperations())
      if (known.getStringRef().starts_with("transform."))
        names.push_back(known.getStringRef().str());
    better << "there is no op '" << name << "'" << transform::nearName(name, names) << " [schedule-script]";
    keepNotes = false;
  } else if (view.contains("does not reference a named transform sequence")) {
    better << missingSequence(diagnostic.getLocation());
  } else {
    // MLIR's ops say what is wrong, and not always whose fault it is.
    Operation *op = diagnostic.getSeverity() == DiagnosticSeverity::Error ? opAt(diagnostic.getLocation()) : nullptr;
    StringRef name = op ? op->getName().getStringRef() : StringRef();
    if (op && !view.contains("[schedule-") && !view.contains(name) &&
        !view.contains(name.drop_front(std::min(name.size(), name.find('.') + 1))))
      better << "'" << name << "': ";
    better << text;
  }
  if (keepNotes)
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      better.attachNote(note.getLocation()) << note.str();
  context.getDiagEngine().emit(std::move(better));
}

} // namespace dmxc::driver
