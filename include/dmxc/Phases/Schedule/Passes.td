//===- Passes.td - passes of the schedule phase -----------------*- tablegen -*-===//
include "mlir/Pass/PassBase.td"

def BuildProgram : Pass<"dlir-build-program", "::mlir::ModuleOp"> {
  let constructor = "::dmxc::createBuildProgramPass(context)";
  let summary = "Turn each function of placed regions into a dlir.program; equal region bodies become one dlir.kernel";
  let dependentDialects = ["::dmxc::dlir::DLIRDialect"];
}

def OrderTasks : Pass<"dlir-order-tasks", "::dmxc::dlir::ProgramOp"> {
  let constructor = "::dmxc::createOrderTasksPass(context)";
  let summary = "Give each task the fewest tokens that order it after every earlier task it conflicts with";
}
