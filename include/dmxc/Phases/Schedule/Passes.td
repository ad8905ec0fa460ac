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

def ScheduleDevices : Pass<"dlir-schedule-devices", "::mlir::ModuleOp"> {
  let constructor = "::dmxc::createScheduleDevicesPass(context)";
  let summary = "Let each target put programs for its device's queues in the place of its kernels";
}
