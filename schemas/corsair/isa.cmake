# Machine description, instruction set, images and assembler: dmxCorsairIsa. The built-in machine is a
# library of its own, so that the runtime, whose images carry theirs, does not hold a copy.

add_library(dmxCorsairIsa STATIC
  text/Assembler.cpp
  Codec.cpp
  ConfigTable.cpp
  text/DocTables.cpp
  Image.cpp
  ImageFile.cpp
  text/InstructionParser.cpp
  InstructionTable.cpp
  Isa.cpp
  Machine.cpp
  text/Printer.cpp
  verify/VerifyCode.cpp
  verify/VerifyKernel.cpp)
target_link_libraries(dmxCorsairIsa PUBLIC dmxCorsairNumerics dmxMachines)

# What the vector device computes: the simulated card's and the interpreter's.
add_library(dmxCorsairSimd STATIC simd/SimdElementwise.cpp simd/SimdRows.cpp simd/SimdWindows.cpp)
target_link_libraries(dmxCorsairSimd PUBLIC dmxCorsairIsa)

dmx_builtin_machine(corsair corsair-like.json LIBS dmxCorsairIsa)

foreach(library dmxCorsairIsa dmxCorsairSimd)
  set_target_properties(${library} PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endforeach()
# The device, which has a budget, is made of these too: what it does not use is dropped, and
# nothing in the instruction set's library is hot.
foreach(library dmxCorsairIsa dmxCorsairNumerics dmxCorsairSimd)
  target_compile_options(${library} PRIVATE ${DMXC_COMPACT})
endforeach()
target_compile_options(dmxCorsairIsa PRIVATE ${DMXC_SMALL})

# Writes ISA-tables.md: dmx-isa-tables > schemas/corsair/ISA-tables.md
add_executable(dmx-isa-tables text/WriteTables.cpp)
target_link_libraries(dmx-isa-tables PRIVATE dmxCorsairIsa)

# Which bytes code touches, before it runs; not part of the runtime.
add_library(dmxCorsairAccess STATIC
  verify/Access.cpp
  verify/AccessRules.cpp
  verify/AccessSpan.cpp
  Schedule.cpp)
target_link_libraries(dmxCorsairAccess PUBLIC dmxCorsairIsa)

# What dmx-inspect shows of images; not part of the runtime.
add_library(dmxCorsairView STATIC
  text/ImageDiff.cpp
  MemoryMap.cpp
  verify/View.cpp)
target_link_libraries(dmxCorsairView PUBLIC dmxCorsairAccess PRIVATE nlohmann_json::nlohmann_json)
set_target_properties(dmxCorsairAccess dmxCorsairView PROPERTIES POSITION_INDEPENDENT_CODE ON)
