# Configures the runtime with each choice of DMXC_DEVICES, that without corsair from a tree without schemas/corsair; with DMXC_LONG this one
# is built and tested too. Lists that make no runtime are refused by name.
file(REMOVE_RECURSE ${DIR})
file(GLOB found RELATIVE ${SOURCE}/runtime/devices ${SOURCE}/runtime/devices/*/CMakeLists.txt)
string(REPLACE "/CMakeLists.txt" "" found "${found}")
list(REMOVE_ITEM found common cpu)

# configure(TREE NAME DEVICES MESSAGE OPTIONS..): succeeds when MESSAGE is empty, and is refused with it otherwise.
function(configure tree name devices message)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${tree} -B ${DIR}/${name} -G Ninja -DCMAKE_C_COMPILER=${CC} -DCMAKE_CXX_COMPILER=${CXX}
    "-DDMXC_DEVICES=${devices}" ${ARGN}
    OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE failed)
  string(REGEX REPLACE "[ \n]+" " " said "${said}")
  string(FIND "${said}" "${message}" place)
  if((message AND (NOT failed OR place EQUAL -1)) OR (NOT message AND failed))
    message(FATAL_ERROR "${name}: DMXC_DEVICES=${devices} ${ARGN} gave ${failed}: ${said}")
  endif()
endfunction()
set(runtime -DDMXC_BUILD_COMPILER=OFF)

# A tree of links that has nothing of corsair but what tests and the compiler have.
file(GLOB entries RELATIVE ${SOURCE} ${SOURCE}/*)
list(REMOVE_ITEM entries schemas)
list(FILTER entries EXCLUDE REGEX "^build")
file(GLOB formats RELATIVE ${SOURCE} ${SOURCE}/schemas/*)
list(REMOVE_ITEM formats schemas/corsair)
file(MAKE_DIRECTORY ${DIR}/tree/schemas)
foreach(entry IN LISTS entries formats)
  file(CREATE_LINK ${SOURCE}/${entry} ${DIR}/tree/${entry} SYMBOLIC)
endforeach()
configure(${DIR}/tree alone cpu "" ${runtime})

foreach(device IN LISTS found)
  configure(${SOURCE} with-${device} "cpu;${device}" "" ${runtime} -DDMXC_BUILD_TESTS=OFF)
endforeach()
configure(${SOURCE} without-cpu corsair "DMXC_DEVICES: 'corsair' lacks 'cpu'" ${runtime})
configure(${SOURCE} unknown "cpu;nowhere" "DMXC_DEVICES: there is no device 'nowhere'; runtime/devices has " ${runtime})
configure(${SOURCE} common "cpu;common" "DMXC_DEVICES: there is no device 'common'" ${runtime})
configure(${SOURCE} target cpu "'cpu' lacks 'corsair', which DMXC_TARGETS has")

if("$ENV{DMXC_LONG}")
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${DIR}/alone COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${DIR}/alone --output-on-failure -R "^(runtime|unit|cli.tools)" -E "^runtime.devices"
    COMMAND_ERROR_IS_FATAL ANY)
endif()
