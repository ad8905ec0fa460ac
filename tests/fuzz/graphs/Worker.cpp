//===- Worker.cpp - compiles, runs and interprets for random graphs -------===//
//
// Jobs come on stdin, one a line of words that tabs separate; each runs in a child process, so that one that crashes or
// hangs ends alone, and none pays for loading the compiler. The answer is one line: the exit code (a signal's number
// negative, -SIGXCPU after too much time), milliseconds, and what the child wrote with \n and \t escaped.
//
//   compile    MODEL ARGUMENTS..               as dmxc
//   interpret  INPUTS OUTPUTS MODEL ARGUMENTS..  the frontend phase's function in the interpreter, on the folder INPUTS
//   formats    INPUTS OUTPUTS MODEL ARGUMENTS..  likewise behind the partition phase, in the numbers of the device
//   (DeviceFormats.h) run        BUNDLE ISA THREADS OPTIONS [INPUTS OUTPUTS]..  in one session; OPTIONS of devices, ""
//   or k=v,k=v
//
//===----------------------------------------------------------------------===//
#include "DeviceFormats.h"

#include "dmxc/Dialect/DMIR/ConstantData.h"
#include "dmxc/Dialect/DMIR/DMIR.h"
#include "dmxc/Driver/Compilation.h"
#include "dmxc/Driver/Driver.h"
#include "dmxc/Reference/Interpreter.h"
#include "dmxc/Tools/Runtime.h"
#include "dmxc/Tools/TensorDirectory.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace dmxc;
namespace fs = std::filesystem;

namespace {

using Words = std::vector<std::string>;

/// Processor seconds a job may take.
constexpr rlim_t kTimeLimit = 60;

int failed(const Error &error) {
  std::cerr << "error: " << error.message << "\n";
  return exitCodeOf(error.kind);
}

int compile(const Words &words) {
  std::string name = "dmxc";
  std::vector<char *> arguments{name.data()};
  for (size_t i = 1; i < words.size(); ++i)
    arguments.push_back(const_cast<char *>(words[i].c_str()));
  arguments.push_back(nullptr);
  return driver::dmxcMain(static_cast<int>(arguments.size()) - 1, arguments.data());
}

Status writeAll(const std::string &folder, const Words &names, llvm::ArrayRef<Tensor> tensors) {
  fs::create_directories(folder);
  for (size_t i = 0; i < names.size(); ++i)
    if (Status written =
            tools::writeNpy(folder + "/" + tools::tensorFileName(tools::TensorRole::Output, names[i]), tensors[i]);
        !written)
      return written;
  return Status::ok();
}

Result<std::vector<Tensor>> readAll(const std::string &folder, const std::vector<tools::WantedTensor> &wanted) {
  if (wanted.empty())
    return std::vector<Tensor>();
  return tools::readTensorDirectory(folder, tools::TensorRole::Input, wanted);
}

int interpret(const Words &words, bool formats) {
  driver::Options options;
  if (std::optional<int> code = driver::parseOptions({words.begin() + 3, words.end()}, options, std::cout, std::cerr))
    return *code;
  Diagnostics diagnostics([](const Diagnostic &d) { std::cerr << renderText(d, false) << "\n"; });
  auto compilation = driver::Compilation::create(options, diagnostics);
  if (!compilation || !compilation->import())
    return diagnostics.exitCode();
  for (const Phase &phase : phases().take_front(formats ? phaseIndex("partition") + 1 : 1))
    if (!compilation->runPhase(phase))
      return diagnostics.exitCode();
  if (formats)
    fuzz::castToDeviceFormats(compilation->module());
  auto functions = compilation->module().getOps<mlir::func::FuncOp>();
  auto entry = llvm::find_if(functions, [](mlir::func::FuncOp f) { return f.isPublic(); });
  if (entry == functions.end())
    return failed(modelError("no entry point"));
  mlir::func::FuncOp function = *entry;
  std::vector<tools::WantedTensor> wanted;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    wanted.push_back(
        {function.getArgAttrOfType<mlir::StringAttr>(i, dmir::kNameAttr).str(),
         *dmir::dtypeOf(mlir::cast<mlir::ShapedType>(function.getArgument(i).getType()).getElementType())});
  Result<std::vector<Tensor>> inputs = readAll(words[1], wanted);
  if (!inputs)
    return failed(inputs.error());
  Result<std::vector<Tensor>> results =
      reference::evaluateFunction(function, *inputs, formats ? fuzz::narrowing() : reference::OpObserver());
  if (!results)
    return failed(results.error());
  Words names;
  for (unsigned i = 0; i < function.getNumResults(); ++i)
    names.push_back(function.getResultAttrOfType<mlir::StringAttr>(i, dmir::kNameAttr).str());
  Status written = writeAll(words[2], names, *results);
  return written ? 0 : failed(written.error());
}

/// Binds the inputs of a folder, runs, and writes the outputs.
Status runOnce(tools::ModelSession &session, const std::string &from, const std::string &to) {
  std::vector<tools::WantedTensor> wanted;
  for (const tools::IoTensor &input : session.inputs())
    wanted.push_back({input.name, input.dtype});
  Result<std::vector<Tensor>> inputs = readAll(from, wanted);
  if (!inputs)
    return inputs.takeError();
  for (size_t i = 0; i < inputs->size(); ++i)
    if (Status bound = session.bindInput(i, (*inputs)[i]); !bound)
      return bound;
  if (Status allocated = session.allocateOutputs(); !allocated)
    return allocated;
  if (Status ran = session.run(); !ran)
    return ran;
  Words names;
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < session.outputs().size(); ++i) {
    names.push_back(session.outputs()[i].name);
    outputs.push_back(session.output(i));
  }
  return writeAll(to, names, outputs);
}

int run(const Words &words) {
  tools::SessionSettings settings;
  settings.isa = words[2];
  settings.threads = static_cast<uint32_t>(std::stoul(words[3]));
  std::istringstream options(words[4]);
  for (std::string option; std::getline(options, option, ',');)
    settings.deviceOptions.push_back(option);
  auto session = tools::ModelSession::open(words[1], settings);
  if (!session)
    return failed(session.error());
  for (size_t i = 5; i + 1 < words.size(); i += 2)
    if (Status done = runOnce(**session, words[i], words[i + 1]); !done)
      return failed(done.error());
  return 0;
}

[[noreturn]] void child(const Words &words, int output) {
  dup2(open("/dev/null", O_RDONLY), STDIN_FILENO); // the jobs that follow are not the child's
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  rlimit time{kTimeLimit, kTimeLimit + 5}, core{0, 0};
  setrlimit(RLIMIT_CPU, &time);
  setrlimit(RLIMIT_CORE, &core);
  alarm(4 * kTimeLimit); // one that waits for ever
  int code = 2;
  if (words[0] == "compile" && words.size() > 1)
    code = compile(words);
  else if ((words[0] == "interpret" || words[0] == "formats") && words.size() > 3)
    code = interpret(words, words[0] == "formats");
  else if (words[0] == "run" && words.size() > 4)
    code = run(words);
  else
    std::cerr << "unknown job '" << words[0] << "'\n";
  std::cout.flush();
  exit(code); // with destructors and the leak check of sanitizers
}

std::string escaped(std::istream &text) {
  std::string result;
  for (char c; text.get(c) && result.size() < 20000;)
    result += c == '\n' ? std::string("\\n") : c == '\t' ? std::string("\\t") : std::string(1, c);
  return result;
}

} // namespace

int main(int argc, char **argv) {
  if (argc > 1) // a compile that failed runs its program again for a reproducer
    return driver::dmxcMain(argc, argv);
  std::string path = fs::temp_directory_path() / ("dmx-graph-worker." + std::to_string(getpid()));
  for (std::string line; std::getline(std::cin, line);) {
    Words words(1);
    for (char c : line)
      if (c == '\t')
        words.emplace_back();
      else
        words.back() += c;
    FILE *output = fopen(path.c_str(), "w+");
    if (!output) {
      std::cerr << "dmx-graph-worker: cannot write " << path << "\n";
      return 3;
    }
    auto start = std::chrono::steady_clock::now();
    pid_t pid = fork();
    if (pid < 0)
      return perror("dmx-graph-worker: fork"), 3;
    if (pid == 0)
      child(words, fileno(output));
    int status = 0;
    waitpid(pid, &status, 0);
    fclose(output);
    auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start).count();
    std::ifstream text(path);
    std::cout << (WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status)) << "\t" << took << "\t"
              << escaped(text) << std::endl;
  }
  unlink(path.c_str());
  return 0;
}
