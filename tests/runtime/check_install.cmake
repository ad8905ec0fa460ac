# Installs the runtime to a scratch place and builds consumer.c against it in three ways: pkg-config with
# the shared and with the static library, and find_package(DmxRuntime).
file(REMOVE_RECURSE ${DIR})
file(MAKE_DIRECTORY ${DIR})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD} --prefix ${DIR}/first --component runtime
  OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
file(RENAME ${DIR}/first ${DIR}/prefix) # a moved tree works as well
execute_process(COMMAND ${WRITER} ${DIR}/add.bundle COMMAND_ERROR_IS_FATAL ANY)
file(GLOB_RECURSE pc ${DIR}/prefix/dmxrt.pc)
if(NOT pc)
  message(FATAL_ERROR "dmxrt.pc was not installed")
endif()
get_filename_component(pcdir ${pc} DIRECTORY)
get_filename_component(libdir ${pcdir} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pcdir})
set(ENV{LD_LIBRARY_PATH} ${libdir})

function(expect_answer program)
  execute_process(COMMAND ${program} ${DIR}/add.bundle OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  if(NOT output STREQUAL "0.5 1.5 2.5 3.5 4.5 5.5 6.5 7.5\n")
    message(FATAL_ERROR "${program}: wrong answer: ${output}")
  endif()
endfunction()

execute_process(COMMAND sh -c "'${CC}' -std=c11 -Wall -Wextra -Werror '${SOURCE}/consumer.c' -o '${DIR}/shared' $(pkg-config --cflags --libs dmxrt)"
  COMMAND_ERROR_IS_FATAL ANY)
expect_answer(${DIR}/shared)
execute_process(COMMAND sh -c "'${CC}' -std=c11 '${SOURCE}/consumer.c' -o '${DIR}/static' $(pkg-config --cflags dmxrt) '${libdir}/libdmxrt.a' $(pkg-config --static --libs-only-l dmxrt | sed 's/-ldmxrt//') -pthread"
  COMMAND_ERROR_IS_FATAL ANY)
set(ENV{LD_LIBRARY_PATH} "")
expect_answer(${DIR}/static)

file(MAKE_DIRECTORY ${DIR}/project)
file(WRITE ${DIR}/project/CMakeLists.txt [[
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C CXX)
find_package(DmxRuntime 0.1 REQUIRED)
add_executable(with_shared ${SOURCE}/consumer.c)
target_link_libraries(with_shared PRIVATE DmxRuntime::dmxrt)
add_executable(with_static ${SOURCE}/consumer.c)
target_link_libraries(with_static PRIVATE DmxRuntime::dmxrt_static)
set_target_properties(with_static PROPERTIES LINKER_LANGUAGE CXX)
# A compiler that writes a bundle and a depfile: the rule runs when the model or what it names changes.
file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/fake-dmxc "#!/bin/sh
# MODEL -o OUT ... -MD -MF FILE -MT OUT
model=$1; out=$3
while [ $# -gt 0 ]; do [ \"$1\" = -MF ] && depfile=$2; shift; done
echo run >> \"$out.log\"
cp \"$model\" \"$out\"
echo \"$out: $model $model.data\" > \"$depfile\"
")
file(CHMOD ${CMAKE_CURRENT_BINARY_DIR}/fake-dmxc PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
set(DMXC_EXECUTABLE ${CMAKE_CURRENT_BINARY_DIR}/fake-dmxc)
dmxc_add_bundle(net MODEL net.onnx TARGETS cpu:x86-64-v3 OPTIONS -O3)
]])
file(WRITE ${DIR}/project/net.onnx "model")
file(WRITE ${DIR}/project/net.onnx.data "weights")
execute_process(COMMAND ${CMAKE_COMMAND} -S ${DIR}/project -B ${DIR}/build -G Ninja -DCMAKE_PREFIX_PATH=${DIR}/prefix
  -DSOURCE=${SOURCE} -DCMAKE_C_COMPILER=${CC} OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
function(expect_runs count)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${DIR}/build OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
  file(STRINGS ${DIR}/build/net.bundle.log runs)
  list(LENGTH runs found)
  if(NOT found EQUAL count)
    message(FATAL_ERROR "the bundle's rule ran ${found} times, expected ${count}")
  endif()
endfunction()
expect_runs(1)
expect_answer(${DIR}/build/with_shared)
expect_answer(${DIR}/build/with_static)
expect_runs(1)
execute_process(COMMAND ${CMAKE_COMMAND} -E sleep 1.1)
file(TOUCH ${DIR}/project/net.onnx.data)
expect_runs(2)
execute_process(COMMAND ${CMAKE_COMMAND} -E sleep 1.1)
file(TOUCH ${DIR}/project/net.onnx)
expect_runs(3)
expect_runs(3)
