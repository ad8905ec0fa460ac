//===- Passes.td - passes of the schedule phase -----------------*- tablegen -*-===//
include "mlir/Pass/PassBase.td"

def BuildProgram : Pass<"dlir-build-program", "::mlir::ModuleOp"> {
  let constructor = "::dmxc::createBuildProgramPass(context)";
  let summary = "Turn each function of placed regions into a dlir.program; equal region bodies become one dlir.kernel";
  let description = [{
    Locations do not count when bodies are compared, nor what a strategy says of the task alone. Kernels that own their
    constants are not shared. Branches and bodies of loops become programs that the task of the op names.
  }];
  let dependentDialects = ["::dmxc::dlir::DLIRDialect"];
}

def OrderTasks : Pass<"dlir-order-tasks", "::dmxc::dlir::ProgramOp"> {
  let constructor = "::dmxc::createOrderTasksPass(context)";
  let summary = "Give each task the fewest tokens that order it after every earlier task it conflicts with";
  let description = [{
    Two tasks conflict when they touch the same bytes and one of them writes, through views and arena ranges too. A token
    that others imply is left out. The verifier of dlir.program checks the result.
  }];
}

def ScheduleDevices : Pass<"dlir-schedule-devices", "::mlir::ModuleOp"> {
  let constructor = "::dmxc::createScheduleDevicesPass(context)";
  let summary = "Let each target put programs for its device's queues in the place of its kernels";
  let description = [{
    Kernels of the host's target stay functions. A target that cannot schedule a kernel reports it at the kernel's nodes.
  }];
}
