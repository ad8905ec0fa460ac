//===- HelpTopics.cpp - what --help of dmxc says beside its options -------===//
#include "HelpTopics.h"
#include "OptionValues.h"

#include "dmxc/Driver/Registry.h"
#include "dmxc/Target/TargetHelp.h"

namespace dmxc::driver {

using tools::HelpPage;
using tools::HelpTopic;

static HelpTopic targetsTopic() {
  HelpTopic topic{
      "targets",
      "What a bundle can be compiled for",
      "-t names a target and, behind a colon, its levels: kinds of its machines, or what one is made of, with + "
      "between them. It may be given several times; what none of them computes runs on the host.\n\n"
      "--place 'GLOB=TARGET' puts nodes whose names match on a target, the last match counts; one that does not "
      "compute them is an error (exit 4), and so is a glob without a node (exit 2). --require-target T:PCT fails "
      "unless at least PCT % of the ops run on T (100 where nothing is said); --placement-report - prints "
      "which target computes each node, in which numbers and why. --print-targets lists the targets of this build, "
      "--print-target-info T says what is known of one.",
      {},
      {}};
  for (const std::string &target : targetNames()) {
    const TargetHelp &help = helpOf(target);
    if (!help.levels.empty())
      topic.rows.push_back({target, "Levels of " + target + ": " + help.levels + "."});
    for (const TargetHelp::Example &example : help.examples)
      topic.examples.push_back({"dmxc model.onnx -o m.bundle -t " + exampleOf(target, example), example.what});
  }
  return topic;
}

static HelpTopic numericsTopic() {
  HelpTopic topic{
      "numerics",
      "In which numbers targets compute",
      "--numerics MODE is for the targets that know the mode; each has its own where none is given. dmxc "
      "then prints the formats of nodes that are not computed in their tensors' types, and the error that "
      "rounding made. --keep-precision GLOB leaves the weights and operands of nodes as they are, and of modes with "
      "blocks --max-error E weights whose error is larger. dmx-compare --numerics MODE --per-node says how far each "
      "node is "
      "from f32.",
      {},
      {{"dmxc model.onnx -o m.bundle --numerics MODE", ""},
       {"dmxc model.onnx -o m.bundle --numerics int4-weights:64 --keep-precision 'lm_head*' --max-error 0.12", ""},
       {"dmx-compare model.onnx --inputs data --numerics MODE --per-node", ""}}};
  for (const std::string &target : targetNames())
    if (const std::string &modes = helpOf(target).numerics; !modes.empty())
      topic.rows.push_back({target, "Of " + target + ": " + modes + "."});
  return topic;
}

static HelpTopic kernelsTopic() {
  HelpTopic topic{
      "kernels",
      "Kernels of your own",
      "--kernels FILE (JSON; schemas/kernels.schema.json) declares kernels: what they take and give, with dims as "
      "expressions, and for each target code, which lies beside the file: for cpu an ELF object or LLVM bitcode, "
      "for other targets MLIR or assembly. A kernel computes ONNX nodes of the domain and name that it declares, calls "
      "of a torch operator, or an op of DMIR in its place. A reference, a function of DMIR beside it, says what it "
      "computes: dmx-compare takes it.\n\n"
      "A kernel is code: what it returns is the run's status, the manifest has its digest, dmx-inspect lists it as "
      "user code, and dmx-run --no-user-code refuses it. Its objects call no libraries and have no constructors, "
      "no thread-local data and no text relocations. A node whose kernel no target of the compile has code of is "
      "an error (exit 4).\n\n"
      "A micro-kernel (\"kind\": \"micro\") computes full tiles of products of f32 inside generated kernels, which "
      "pack "
      "operands, compute what the edges cut off and all that is fused. --ukernels NAME=on calls it where it fits, off "
      "nowhere; auto measures nothing, and is on where the file has \"prefer\": true.",
      {},
      {{"dmxc model.onnx --kernels mine.json -o m.bundle", ""},
       {"dmxc model.onnx --kernels mine.json --ukernels acme.sgemm=off -o m.bundle", "the bytes without it"},
       {"dmx-run m.bundle --random-inputs 1 --device-opt guard=end", "finds writes outside of its buffers"}}};
  for (const std::string &target : targetNames())
    if (const std::string &bodies = helpOf(target).bodies; !bodies.empty())
      topic.rows.push_back({target, "Code for " + target + ": " + bodies + "."});
  return topic;
}

static HelpTopic masksTopic() {
  return {
      "masks",
      "What is read of masks of attention",
      "Masks are read as rules of the index (j <= i + past), whatever way an exporter spelt them: comparisons of "
      "ranges, tril and triu, constants, selects, sums with -inf or the least number, or with another one such as "
      "-1e4, "
      "products with 0 and 1; constants of blocks are lists of tiles. No tensor of a rule is in the "
      "bundle, and kernels skip the keys that it leaves out where there are enough of them. With --sparsity off they "
      "look at all keys; results are the same, to the bit, where -inf or the least number is in the place of "
      "scores. Ids of documents, positions, padding and whole matrices that a run brings are asked tile by tile.\n\n"
      "--mask 'INPUT=(b, h, i, j): j <= i and i - j < 512' says what an input always is; it leaves the signature, "
      "true, "
      "1 or 0.0 where the rule holds and false, 0 or -inf elsewhere. Axes have any names, one for each of the input's; "
      "sums of them and of numbers, '* // %' by a number and |x| are compared and joined by and, or, not. dmx-compare "
      "checks it of the tensor that is given.\n\n"
      "--sparsity-report FILE (- for stdout; JSON where it ends in .json) has of each attention the rule, the node "
      "that it was read from, how many scores are kept, counted in tiles of --sparsity-tile where that is given, "
      "and what the kernel computes; of a mask that is no rule the node and the reason. dmx-inspect --what masks "
      "says it of a bundle.\n\n"
      "Zeros are followed beyond attention: of constants (triangles, bands, blocks along the diagonal, rows and "
      "columns), "
      "of tensors times a mask or chosen by a rule, through softmax, products and what moves elements; and so is what "
      "outputs depend on, against the graph. The report says of each product what is known of its operands and "
      "demanded "
      "of its result, where that began, what the kernel leaves out by it, or why it does not. --emit frontend shows "
      "all "
      "as dmir.sparsity. Rows of a product that nobody reads are not computed.",
      {},
      {{"dmxc model.onnx -o m.bundle --sparsity-report -", ""},
       {"dmxc model.onnx -o m.bundle --mask 'mask=(b, h, i, j): j <= i'", ""}}};
}

static HelpTopic schedulesTopic() {
  return {
      "schedules",
      "How regions are computed, and who decides it",
      "A region is what one kernel computes. dmxc chooses how: --explain-decisions prints every choice that is free, "
      "its values, and who made it. Three things overrule it.\n\n"
      "--schedule FILE is an MLIR transform script (@__transform_main) that is applied after partition, with "
      "transform.dmx.match and transform.dmx.decide, or behind the stop (--print-phases) that a sequence names: "
      "{dmx.at = \"schedule.STAGE\"}; where kernels are loops, transform.dmx.interchange, tile, unroll and fuse_into "
      "change "
      "them. Several are applied in their order. --set NAME=VALUE gives their parameters values, "
      "transform.dmx.include \"FILE\" takes in what another file has, found beside it, in the folders of "
      "--schedule-path, or "
      "among those that targets ship, and --schedule-log what was done for the forms of loops (--print-forms) that "
      "they need. --save-schedule FILE writes a script that decides all that was decided, and says by whom: with it "
      "alone the bundle is the same. Of functions of Python 'python3 -m dmxsched mine.py -o mine.mlir' prints one.\n\n"
      "'dmxc tune' measures candidates, on devices by their clock, on processors by CPU time beside the default's, at "
      "most "
      "--trials of them (64) a region, and keeps the best in --db FILE; what the file has stays and is not measured "
      "again. --report FILE has each measure. --list prints the candidates, and measures none.\n\n"
      "--tuning-db FILE is such a file in any compile: regions that it has records of are computed so.",
      {},
      {{"dmxc model.onnx -o m.bundle --explain-decisions", ""},
       {"dmxc model.onnx -o m.bundle --schedule mine.mlir --set rows=4", ""},
       {"dmxc tune model.onnx -t TARGET --trials 20 --db found.jsonl", ""},
       {"dmxc model.onnx -o m.bundle -t TARGET --tuning-db found.jsonl", ""}}};
}

static HelpTopic dimsTopic() {
  return {
      "dims",
      "Sizes that the model leaves open, and state",
      "A dim that has a name in the model stays open: one bundle runs all its sizes. --dim NAME=8 fixes it, and "
      "code is made for that size; --dim NAME=1..512 bounds it. --shape INPUT=1x3x224x224 fixes all dims of an "
      "input. --shape INPUT=none says that an input which is optional, or a sequence, has no value.\n\n"
      "--state INPUT=OUTPUT makes the output of a run the input of the next, zeros in the first. Both leave the "
      "signature and stay in the session. '*' stands for any text, the same in both names: --state "
      "'past.*=present.*'. An output that is the input and one row behind it makes a cache of as "
      "many rows as the dim allows.\n\n"
      "Where the dim of the rows is open, as is how many a run adds, the state has a length: --dim past=0..4096 says "
      "for how many rows there is room. A run appends its rows in place, and attention reads those that are there; "
      "the session knows how many (dmx_session_state_length in dmx.h, and how to truncate, copy and save them). "
      "Masks and positions stay inputs. --state-type bf16 or f16 keeps such states of floats in half the memory of "
      "f32: "
      "a run rounds the rows that it appends, and attention computes in f32 with what it reads. The cpu target alone "
      "keeps such states; of others they are refused.\n\n"
      "Of a decoder that is given as a folder, caches are such states by themselves: for the cpu target, "
      "where all of them grow along one dim, and --dim or the configuration says how many tokens there may be; a "
      "note says what they lack. A dim that counts sequences is 1 then, where --dim does not say another size. --state "
      "none leaves caches inputs and outputs.\n\n"
      "dmx-inspect --what dims shows the dims of a bundle.",
      {},
      {{"dmxc model.onnx -o m.bundle --dim batch=8", ""},
       {"dmxc model.onnx -o m.bundle --dim seq=1..512", ""},
       {"dmxc model.onnx -o m.bundle --state past=present", ""},
       {"dmxc decoder.onnx -o m.bundle --state 'past.*=present.*' --dim past=0..4096", ""},
       {"dmxc decoder.onnx -o m.bundle --state 'past.*=present.*' --dim past=0..4096 --state-type bf16", ""},
       {"dmxc FOLDER -o m.bundle --dim batch_size=4", ""}}};
}

tools::HelpPage helpPage() {
  HelpPage page;
  page.usage = {"MODEL -o OUT.bundle [-t TARGET]... [options]",
                "tune MODEL -t TARGET [--trials N] [--db FILE] [options]"};
  page.examples = {{"dmxc model.onnx -o model.bundle", "for this build's default target"},
                   {"dmxc model.onnx -o m.bundle -t TARGET", "for another one: --help targets"},
                   {"dmxc model.onnx -o m.bundle --dim batch=8", "fix a symbolic dim"},
                   {"dmxc model.onnx --emit partition -o -", "what was fused, where it runs"},
                   {"dmxc model.onnx -o m.bundle --explain-decisions", "what is free, and who chose"},
                   {"dmxc tune model.onnx -t TARGET --trials 20 --db t.jsonl", "find better values by measuring"},
                   {"dmxc model.onnx -o m.bundle -MD -MF m.d", "dependencies for make or ninja"},
                   {"curl URL | dmxc - -o - > m.bundle", "from stdin, to stdout"}};
  page.more = "Documentation: README.md.";
  page.exitCodes =
      "0 ok; 1 the model is invalid or unsupported; 2 usage; 3 file, I/O or out of memory; 4 the target "
      "cannot satisfy the constraints; 5 verification or comparison failed; 70 internal error (a reproducer "
      "is written).";
  page.topics = {targetsTopic(), numericsTopic(), kernelsTopic(), masksTopic(), schedulesTopic(), dimsTopic()};
  page.commands = {{"tune", "Find better values by measuring"}};
  for (const char *option : {"--target", "--print-target-info"})
    page.values[option] = targetNames();
  page.singleDash = {"MD", "MF", "MT", "Werror"};
  return page;
}

} // namespace dmxc::driver
